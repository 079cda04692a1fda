-- drop_gate_events.sql: they are folded. Only what this transaction has read is there: there is one writer.
delete from gate_event where gate_event.gate = :gate;
