-- save_rollup.sql: write a sum, in place of the one before.
insert into rollup (step, at, tenant, queue, kind, counters, run, run_micros, wait, wait_micros)
values (:step, :at, :tenant, :queue, :kind, :counters, :run, :run_micros, :wait, :wait_micros)
on conflict (step, at, tenant, queue, kind)
do update set counters = excluded.counters, run = excluded.run, run_micros = excluded.run_micros,
    wait = excluded.wait, wait_micros = excluded.wait_micros;
