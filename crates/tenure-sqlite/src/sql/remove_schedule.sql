-- remove_schedule.sql: its fires go with it, its jobs stay.
delete from schedule where id = :id
