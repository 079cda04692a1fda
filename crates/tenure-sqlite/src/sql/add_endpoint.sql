-- add_endpoint.sql: a new webhook endpoint.
insert into webhook_endpoint (id, tenant, url, events, prefix, secret, created_at, listens_since)
values (:id, :tenant, :url, :events, :prefix, :secret, :now, :now);
