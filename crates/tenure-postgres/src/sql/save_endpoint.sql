-- save_endpoint.sql: write an endpoint that is held.
--   $1 id, $2 url, $3 events, $4 prefix, $5 secret, $6 previous, $7 previous until, $8 disabled at, $9 why, $10 failing since, $11 listens since
update tenure.webhook_endpoint
set url = $2, events = $3, prefix = $4, secret = $5, previous = $6, previous_until = $7, disabled_at = $8, disabled_why = $9, failing_since = $10, listens_since = $11
where id = $1::uuid
