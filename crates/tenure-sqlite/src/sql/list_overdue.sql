-- list_overdue.sql: runs whose deadline is over.
-- Zero rows: none is.
select run.id from run
where run.state in (0, 1) and run.deadline is not null and run.deadline <= :now
order by run.deadline
limit :limit;
