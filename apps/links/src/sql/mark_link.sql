-- mark_link: link $1 is $2 since $4, because of $3, as the attempt with fence $6 of job $5 met it. Zero rows: it has ended, or a
-- later attempt has failed.
update link_canonical set state = $2, last_error = $3, failed_at = $4, aside_at = null
where id = $1 and state not in ('enriched', 'dead')
  and not exists (select 1 from link_failure later where later.job = $5 and later.fence > $6)
