-- remove_endpoint.sql: a webhook endpoint goes.
delete from webhook_endpoint where webhook_endpoint.id = :id;
