-- sum_usage.sql: what was used, the newest day first.
-- Zero rows means that nobody reported any usage since.
select usage_total.day, tenant.name, usage_total.kind, usage_total.name, usage_total.amount, usage_total.attempts
from usage_total
join tenant on tenant.id = usage_total.tenant
where usage_total.day >= :since
and (:kind is null or usage_total.kind = :kind)
and (:sight is null or tenant.name = :sight)
and (
  :after_day is null
  or usage_total.day < :after_day
  or usage_total.day = :after_day
    and (tenant.name, usage_total.kind, usage_total.name) > (:after_tenant, :after_kind, :after_name)
)
order by usage_total.day desc, tenant.name, usage_total.kind, usage_total.name
limit :limit;
