-- leap_numbers.sql: numbers that are known outside of the file leap over all that could have been drawn: leases (the fence),
-- rows of the journal (part of a webhook's event id), workers. 2^40 each, and 2^20 for workers, whose numbers have 31 bits.
update sqlite_sequence set seq = seq + case name when 'worker' then 1 << 20 else 1 << 40 end
where name in ('lease', 'journal', 'worker');
