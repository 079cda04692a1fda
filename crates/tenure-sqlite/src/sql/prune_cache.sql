-- prune_cache.sql: answers that are over go, and the oldest of those that are too many; a bounded batch.
delete from cache
where cache.rowid in (
    select rowid from (select over.rowid from cache as over where over.expires_at <= :now limit 1000)
    union
    select rowid from (
        select old.rowid from cache as old order by old.put_at, old.key
        limit min(1000, max(0, (select count(*) from cache) - :most))));
