-- owing_gates.sql: gates of a pattern whose bucket is not full.
-- Zero rows means that a change of the rule moves no bucket.
select gate.name
from gate
where gate.name >= :first
  and gate.name < :end
  and gate.full_at > :now
order by gate.name;
