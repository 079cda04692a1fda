-- add_journal.sql: write a transition down, in its own transaction. An event exists if and only if it committed.
insert into journal (at, worker, actor, event, lease, jobs, reason, details)
values (:now, :worker, :actor, :event, :lease, :jobs, :reason, :details);
