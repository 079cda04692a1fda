-- fail_delivery.sql: the job of a delivery ended without success.
update webhook_delivery set state = 2, finished_at = :now
where webhook_delivery.job = :job and webhook_delivery.state = 0;
