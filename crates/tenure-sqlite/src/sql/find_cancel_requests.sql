-- find_cancel_requests.sql: which of a lease's jobs somebody asked to cancel and which still run.
-- Zero rows means that nobody did.
select cancel_request.job
from json_each(:jobs) as listed
cross join cancel_request on cancel_request.job = unhex(listed.value, '-')
where not exists (
    select 1 from attempt where attempt.job = cancel_request.job and attempt.lease = :lease)
order by listed.key;
