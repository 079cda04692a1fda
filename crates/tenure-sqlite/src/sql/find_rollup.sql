-- find_rollup.sql: one sum.
-- Zero rows means that there is none yet.
select rollup.counters, rollup.run, rollup.run_micros, rollup.wait, rollup.wait_micros
from rollup
where rollup.step = :step and rollup.at = :at and rollup.tenant = :tenant and rollup.queue = :queue
  and rollup.kind = :kind;
