-- prune_operation.sql: the operation of a pruned job goes with it.
delete from operation where operation.id = :job;
