-- list_slots.sql: the queues a worker said it serves, in its own order, each with its slots.
-- Zero rows means that it serves none.
select listed.value ->> 0, listed.value ->> 1 from json_each(:queues) as listed order by listed.key;
