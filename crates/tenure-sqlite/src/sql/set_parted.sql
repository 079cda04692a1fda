-- set_parted.sql: jobs of runs come into this queue.
update queue set parted = 1 where queue.id = (select job.queue from job where job.id = :job) and queue.parted = 0;
