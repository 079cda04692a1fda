-- save_operation.sql: how far an operation is.
update operation
set cursor = :cursor, total = :total, done = :done, refused = :refused, last_refusal = :last_refusal,
    finished_at = :finished_at
where operation.id = :id;
