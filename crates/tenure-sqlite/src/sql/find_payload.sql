-- find_payload.sql: the payload of a job. No row: it is not there.
select job.payload from job where job.id = :job;
