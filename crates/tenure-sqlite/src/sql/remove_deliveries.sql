-- remove_deliveries.sql: the deliveries of an endpoint go with it.
delete from webhook_delivery where webhook_delivery.endpoint = :id;
