-- 0016_own_views: what one tenant may see of tables that its session has no right to (docs/SECURITY.md, ADR 17). Used
-- where the roles are installed (roles.rs).
--
-- The names are those of what they stand for, after own_: behind the second wall the library reads them instead
-- (wall.rs). They are read with the rights of their owner, so each names the tenant itself. The tenant is a setting of the transaction: it is null where nobody has
-- set it and '' after a transaction that had, and both are nobody.

create function tenure.own_tenant() returns int language sql stable as $$
  select t.id from tenure.tenant t where t.name = nullif(current_setting('tenure.tenant', true), '')
$$;

-- A barrier keeps functions of the caller's from being shown what is left out.
create view tenure.own_jobs with (security_barrier) as
select j.* from tenure.jobs j where j.tenant = nullif(current_setting('tenure.tenant', true), '');

-- No barrier: it would keep a page from being read in the order of the index, and there is little to hide in here.
create view tenure.own_ready as
select r.run_at, r.job, r.queue, r.line, r.priority, r.attempt, r.losses, r.state
from tenure.ready r join tenure.job j on j.id = r.job
where j.tenant = (select tenure.own_tenant());

-- A lease lists what was claimed together, of whichever tenants: here it lists what is left of that.
create view tenure.own_lease with (security_barrier) as
select l.no, l.queue, l.worker, l.claimed_at, l.renewed_at, l.expires_at, o.jobs
from tenure.lease l
cross join lateral (
  select array_agg(j.id) as jobs from unnest(l.jobs) u (job) join tenure.job j on j.id = u.job
  where j.tenant = (select tenure.own_tenant())
) o
where o.jobs is not null;

create view tenure.own_usages with (security_barrier) as
select u.day, u.tenant, u.kind, u.name, u.amount, u.attempts from tenure.usages u
where u.tenant = nullif(current_setting('tenure.tenant', true), '');

-- No secret is known that has this hash.
create view tenure.own_api_key with (security_barrier) as
select k.id, decode(repeat('00', 32), 'hex') as hash, k.tenant, k.name, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.used_at
from tenure.api_key k
where k.tenant = (select tenure.own_tenant());

-- Secrets are sealed, and not even so are they shown.
create view tenure.own_webhook_endpoint with (security_barrier) as
select e.id, e.tenant, e.url, e.events, e.prefix, '\x00'::bytea as secret, null::bytea as previous, e.previous_until, e.created_at, e.listens_since, e.disabled_at, e.disabled_why,
  e.failing_since
from tenure.webhook_endpoint e
where e.tenant = (select tenure.own_tenant());

-- tenure.state_of with the caller's own rights.
create function tenure.own_state_of(_job uuid) returns text language sql stable as $$
  select coalesce(
    (select (array['queued', 'retryable', 'waiting'])[r.state + 1] from tenure.own_ready r where r.job = _job),
    (select (array['succeeded', null, 'failed', 'dead', 'canceled'])[a.how] from tenure.attempt a where a.job = _job and a.final limit 1),
    (select 'running' from tenure.job j where j.id = _job))
$$;

-- What a tenant's session does not see is not there: asked before a verb that runs with other rights. Role and tenant are
-- as before when it answers; when it raises, the transaction is over.
create function tenure.see(_tenant text, _noun text, _key text) returns void language plpgsql as $$
declare
  role_before text := current_setting('role');
  tenant_before text := coalesce(current_setting('tenure.tenant', true), '');
  seen boolean;
begin
  perform set_config('tenure.tenant', _tenant, true);
  perform set_config('role', 'tenure_api', true);
  seen := case _noun
    when 'job' then exists (select from tenure.job j where j.id = _key::uuid)
    when 'run' then exists (select from tenure.run r where r.id = _key::uuid)
    when 'key' then exists (select from tenure.own_api_key k where k.id = _key)
    when 'endpoint' then exists (select from tenure.own_webhook_endpoint e where e.id = _key::uuid)
    when 'schedule' then exists (select from tenure.schedule s where s.name = _key)
  end;
  perform set_config('role', role_before, true);
  perform set_config('tenure.tenant', tenant_before, true);
  if seen is not true then raise exception '% % is not known here', _noun, _key using errcode = 'TN404'; end if;
end $$;
