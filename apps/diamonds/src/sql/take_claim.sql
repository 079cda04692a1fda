-- take_claim: the catalogue is this run's, if it was before, or if the claim is as it was seen and nobody is about to open
-- a run. Zero rows: somebody else has it.
insert into diamonds_claim (source, run_id, turn, pending_until)
values ($1, $2, 1, $3)
on conflict (source) do update set
  run_id = excluded.run_id,
  turn = diamonds_claim.turn + 1,
  pending_until = excluded.pending_until
where diamonds_claim.run_id = excluded.run_id
  or (diamonds_claim.turn = $4 and (diamonds_claim.pending_until is null or diamonds_claim.pending_until <= $5))
