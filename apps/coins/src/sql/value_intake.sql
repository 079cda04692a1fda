-- value_intake: the one valuation of a coin, new or changed; always one row.
insert into coin_valuation (intake_id, cents, low_cents, high_cents, points, outliers, computed_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (intake_id) do update set
  cents = excluded.cents, low_cents = excluded.low_cents, high_cents = excluded.high_cents,
  points = excluded.points, outliers = excluded.outliers, computed_at = excluded.computed_at
