-- record_try.sql: what came of a try.
-- Zero rows means that the delivery is gone.
update webhook_delivery
set state = case when webhook_delivery.state = 1 then 1 else :state end,
    finished_at = case when webhook_delivery.state = 1 then webhook_delivery.finished_at else :finished_at end,
    tries = case when json_array_length(webhook_delivery.tries) < :most
        then json_insert(webhook_delivery.tries, '$[#]', json(:entry)) else webhook_delivery.tries end
where webhook_delivery.job = :job
returning endpoint, state;
