-- sweep_run.sql: what is left of a run is canceled from now on, or nothing is any more.
update run set sweeping = :sweeping where run.id = :run;
