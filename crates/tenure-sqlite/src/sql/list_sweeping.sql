-- list_sweeping.sql: runs of which something may be left that is to be canceled.
-- Zero rows: nothing is.
select run.id from run where run.sweeping = 1 order by run.id limit :limit;
