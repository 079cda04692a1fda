-- save_endpoint.sql: a webhook endpoint as it is from now on.
update webhook_endpoint
set url = :url, events = :events, prefix = :prefix, secret = :secret, previous = :previous,
    previous_until = :previous_until, disabled_at = :disabled_at, disabled_why = :disabled_why,
    failing_since = :failing_since, listens_since = :listens_since
where webhook_endpoint.id = :id;
