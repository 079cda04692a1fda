-- pause_queue.sql: stop or resume claims of a queue.
-- Zero rows means that it was so already: nothing is journaled twice.
update queue set paused = :paused where queue.name = :name and queue.paused <> :paused;
