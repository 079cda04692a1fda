-- save_gate.sql: where a gate stands now.
-- Zero rows cannot be: it was read in this transaction.
update gate
set in_use = :in_use, full_at = :full_at, streak = :streak, open_until = :open_until, probe = :probe, deaf_to = :deaf_to,
    newest = :newest, paused_until = :paused_until, held_until = :held_until, succeeded_at = :succeeded_at,
    failed_at = :failed_at, pause_reason = :pause_reason, trip_reason = :trip_reason
where gate.id = :gate;
