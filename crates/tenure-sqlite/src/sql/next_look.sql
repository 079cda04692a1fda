-- next_look.sql: when the next schedule has to be looked at. No row: none has to.
select look_at from schedule where paused = 0 and look_at > :now order by look_at limit 1
