-- append_event: adds what happened; zero rows: it happened before.
insert into passport_event
  (tenant_id, event_id, event_type, aggregate_type, aggregate_id, occurred_at, payload, job_id, fence)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict do nothing
