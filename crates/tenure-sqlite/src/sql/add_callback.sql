-- add_callback.sql: where a job's producer wants to be told.
insert into job_callback (job, url) values (:job, :url);
