-- find_cursor.sql: how far the journal is told.
select webhook_cursor.seal, webhook_cursor.after from webhook_cursor;
