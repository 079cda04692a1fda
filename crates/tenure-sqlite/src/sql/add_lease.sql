-- add_lease.sql: the right to run what was claimed together. Its number is the fence.
insert into lease (queue, worker, claimed_at, expires_at, jobs, attempts, losses, gates)
values (:queue, :worker, :now, :expires_at, :jobs, :attempts, :losses, :gates)
returning no;
