-- take_added.sql: members that came and are not counted yet; whoever seals counts them.
-- Zero rows: none did.
delete from run_event where run_event.part = :part and run_event.told = 0
returning run_event.members;
