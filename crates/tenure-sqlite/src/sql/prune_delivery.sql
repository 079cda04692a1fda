-- prune_delivery.sql: the delivery of a pruned job goes with it.
delete from webhook_delivery where webhook_delivery.job = :job;
