-- bind_roles.sql: what each role may do, and what the tenant of a transaction sees (docs/SECURITY.md). Rights are taken
-- and given anew each time; a policy that is there is left alone, since changing it would lock its table.
do $$
declare
  rows record;
  right_of record;
  place text;
  others name[];
  roles constant name[] := array['tenure_api', 'tenure_producer', 'tenure_worker', 'tenure_operator', 'tenure_reader'];
begin
  revoke all on all tables in schema tenure from tenure_api, tenure_producer, tenure_worker, tenure_operator, tenure_reader;
  revoke all on all sequences in schema tenure from tenure_api, tenure_producer, tenure_worker, tenure_operator, tenure_reader;
  grant usage on schema tenure to tenure_api, tenure_producer, tenure_worker, tenure_operator, tenure_reader;
  grant usage, select on sequence tenure.lease_no_seq to tenure_worker, tenure_operator;
  grant select on sequence tenure.journal_id_seq to tenure_worker, tenure_operator;
  grant execute on function tenure.prune(timestamptz, boolean, int, timestamptz) to tenure_worker, tenure_operator;

  for right_of in select r.who, r.rights, r.places from (values
    -- A tenant of the API. Its rows only, see below; of what is shared a name.
    ('tenure_api', 'select', 'job attempt run partition schedule schedule_fire own_jobs own_ready own_lease own_usages own_api_key
      job_callback webhook_delivery own_webhook_endpoint operation rollup gate_rollup'),
    ('tenure_api', 'select (id, name)', 'tenant queue worker'),
    -- Stores jobs, and learns where a job stands. Payloads it has no right to read.
    ('tenure_producer', 'select', 'home migration ready unique_key tenant queue new_name'),
    ('tenure_producer', 'insert', 'job job_callback ready unique_key new_name'),
    ('tenure_producer', 'update', 'unique_key'),
    ('tenure_producer', 'select (id, tenant, queue, line, priority, run_at, part, kib)', 'job'),
    ('tenure_producer', 'select (job, lease, how, final)', 'attempt'),
    -- Runs jobs and keeps house. Keys and tokens it has no right to read, and quotas and rules it does not make.
    ('tenure_worker', 'select', 'home migration tenant gate_rule gate_rules'),
    ('tenure_worker', 'select, insert', 'journal seal new_name'),
    ('tenure_worker', 'insert', 'tenant worker'),
    ('tenure_worker', 'select (id, name, registered_at, seen_at, state, running, reporting, version, host, pid, queues, slots, told)', 'worker'),
    ('tenure_worker', 'update (seen_at, state, running, reporting, version, host, pid, queues, slots)', 'worker'),
    ('tenure_worker', 'select, insert', 'job attempt job_callback'),
    ('tenure_worker', 'update (final)', 'attempt'),
    ('tenure_worker', 'select, delete', 'webhook_delivery operation'),
    ('tenure_worker', 'select, insert, update', 'queue gate run partition'),
    ('tenure_worker', 'select, update', 'schedule run_fold usage_fold rollup_cursor prune_mark'),
    ('tenure_worker', 'select, insert, update, delete', 'ready lease unique_key cancel_request gate_event run_event schedule_fire usage_event usage_total rollup gate_rollup cache'),
    ('tenure_worker', 'select', 'jobs usage_unfolded usages violations'),
    -- Serves the API, and does what operators do: everything but to change what was written down.
    ('tenure_operator', 'select', 'home migration'),
    ('tenure_operator', 'select, insert', 'journal seal new_name'),
    ('tenure_operator', 'select, insert', 'job attempt job_callback'),
    ('tenure_operator', 'update (final)', 'attempt'),
    ('tenure_operator', 'select, insert, update, delete', 'tenant queue gate_rule gate_rules gate gate_event worker ready lease run partition run_event run_fold unique_key
      cancel_request cache schedule schedule_fire api_key usage_event usage_total usage_fold webhook_endpoint webhook_delivery webhook_cursor operation rollup gate_rollup rollup_cursor
      prune_mark session'),
    ('tenure_operator', 'select', 'jobs audit_log violations workers gates schedules runs partitions api_keys usage_unfolded usages webhook_endpoints webhook_deliveries operations'),
    -- People with a tool of their own. No payload, no result.
    ('tenure_reader', 'select', 'audit_log workers gates runs partitions api_keys usages webhook_deliveries operations'),
    ('tenure_reader', 'select (id, tenant, queue, kind, priority, state, attempts, max_attempts, losses, max_losses, run_at, next_retry_at, locked_by, lease, locked_at, heartbeat_at,
      lease_expires_at, created_at, started_at, completed_at, updated_at, error_message, trace, cancel_requested, gate)', 'jobs'),
    ('tenure_reader', 'select (tenant, name, cron, zone, missed, queue, kind, paused, pause_reason, last_fire_at)', 'schedules')
  ) r (who, rights, places) loop
    foreach place in array regexp_split_to_array(right_of.places, '\s+') loop
      execute format('grant %s on tenure.%I to %I', right_of.rights, place, right_of.who);
    end loop;
  end loop;

  -- Which rows a tenant's session sees. A row without a tenant of its own is its job's, its run's or its schedule's: a
  -- scalar look-up by key, which no plan turns into a scan of all jobs, as it may an `exists`.
  for rows in select p.place, p.seen from (values
    ('tenant', 'name = nullif(current_setting(''tenure.tenant'', true), '''')'),
    ('job', 'tenant = (select tenure.own_tenant())'),
    ('run', 'tenant = (select tenure.own_tenant())'),
    ('schedule', 'tenant = (select tenure.own_tenant())'),
    ('unique_key', 'tenant = (select tenure.own_tenant())'),
    ('api_key', 'tenant = (select tenure.own_tenant())'),
    ('usage_event', 'tenant = (select tenure.own_tenant())'),
    ('usage_total', 'tenant = (select tenure.own_tenant())'),
    ('webhook_endpoint', 'tenant = (select tenure.own_tenant())'),
    ('webhook_delivery', 'tenant = (select tenure.own_tenant())'),
    ('operation', 'tenant = (select tenure.own_tenant())'),
    ('rollup', 'tenant = (select tenure.own_tenant())'),
    ('gate_rollup', 'tenant = (select tenure.own_tenant())'),
    ('job_callback', '(select j.tenant from tenure.job j where j.id = job_callback.job) = (select tenure.own_tenant())'),
    ('attempt', '(select j.tenant from tenure.job j where j.id = attempt.job) = (select tenure.own_tenant())'),
    ('partition', '(select r.tenant from tenure.run r where r.id = partition.run) = (select tenure.own_tenant())'),
    ('schedule_fire', '(select s.tenant from tenure.schedule s where s.id = schedule_fire.schedule) = (select tenure.own_tenant())')
  ) p (place, seen) loop
    if not exists (select from pg_catalog.pg_policies where schemaname = 'tenure' and tablename = rows.place and policyname = 'own') then
      execute format('create policy own on tenure.%I to tenure_api using (%s)', rows.place, rows.seen);
      execute format('create policy staff on tenure.%I to tenure_producer, tenure_worker, tenure_operator using (true)', rows.place);
      execute format('alter table tenure.%I enable row level security', rows.place);
    end if;
    -- Whoever was given rights by hand keeps its sight, unless it is bound to a tenant. (An owner is never bound.)
    others := (
      select array_agg(g.rolname order by g.rolname) from pg_catalog.pg_roles g join pg_catalog.pg_class c on c.oid = format('tenure.%I', rows.place)::regclass
      where not g.rolsuper and g.rolname <> all (roles) and not pg_has_role(g.oid, c.relowner, 'usage') and not pg_has_role(g.oid, 'tenure_api', 'usage')
        and has_any_column_privilege(g.oid, c.oid, 'select, insert, update'));
    continue when others is not distinct from (select p.roles from pg_catalog.pg_policies p where schemaname = 'tenure' and tablename = rows.place and policyname = 'others');
    execute format('drop policy if exists others on tenure.%I', rows.place);
    continue when others is null;
    execute format('create policy others on tenure.%I to %s using (true)', rows.place, (select string_agg(format('%I', o), ', ') from unnest(others) o));
  end loop;
end $$;
