-- drop_run_event.sql: it was heard.
delete from run_event where run_event.id = :id;
