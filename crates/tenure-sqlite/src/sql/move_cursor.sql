-- move_cursor.sql: tell the journal on from here.
-- Zero changes means that it stands elsewhere.
update webhook_cursor
set seal = :to_seal, after = :to_after
where webhook_cursor.seal = :seal and webhook_cursor.after = :after;
