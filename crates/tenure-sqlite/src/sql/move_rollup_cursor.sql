-- move_rollup_cursor.sql: everything up to this row is summed.
update rollup_cursor set after = :after;
