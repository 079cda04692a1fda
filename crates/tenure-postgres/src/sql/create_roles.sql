-- create_roles.sql: the roles, for the whole cluster. Whoever is there already stays as it is, and two databases of one
-- cluster may ask for them at the same time. Nobody logs in as one of them: they are granted to users who do.
do $$
declare
  who text;
begin
  foreach who in array array['tenure_api', 'tenure_producer', 'tenure_worker', 'tenure_operator', 'tenure_reader'] loop
    continue when exists (select from pg_catalog.pg_roles where rolname = who);
    begin
      execute format('create role %I nologin', who);
    exception when duplicate_object or unique_violation then null;
    end;
  end loop;
  -- The user who sets the schema up is most often the one that serves it. One who may not grant asks somebody who may:
  -- the answer of the command says so.
  if not exists (select from pg_catalog.pg_roles where rolname = session_user and rolsuper)
      and not pg_catalog.pg_has_role(session_user, 'tenure_api', 'member') then
    begin
      execute format('grant tenure_api to %I', session_user);
    exception when insufficient_privilege or unique_violation then null;
    end;
  end if;
end $$;
