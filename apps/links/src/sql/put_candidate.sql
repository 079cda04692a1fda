-- put_candidate: domain $1 was refused to us for reason $2, at $3, as job $4 met it. Always one row.
insert into link_block_candidate (domain, reason, count, first_seen, last_seen, last_job) values ($1, $2, 1, $3, $3, $4)
on conflict (domain, reason) do update set
  count = link_block_candidate.count + 1,
  -- Two clocks need not agree.
  last_seen = case when excluded.last_seen > link_block_candidate.last_seen
                   then excluded.last_seen else link_block_candidate.last_seen end,
  last_job = excluded.last_job
