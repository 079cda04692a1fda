-- begin_to_tell.sql: nobody listened until now: what happened before is not told.
-- Zero changes means that somebody listened.
update webhook_cursor
set seal = (select coalesce(max(seal.no), 0) + 1 from seal), after = 0
where not exists (select 1 from webhook_endpoint where webhook_endpoint.disabled_at is null);
