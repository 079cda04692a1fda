-- 0007_usage.sql: what handlers said that they used, by day (since 1970, UTC), tenant, kind and name.
create table usage_total (
    day integer not null,
    tenant integer not null references tenant (id),
    kind text not null check (length(kind) between 1 and 100),
    name text not null check (length(name) <= 100),
    amount real not null,
    attempts integer not null check (attempts > 0),
    primary key (day, tenant, kind, name)
) strict, without rowid;
