-- layout_sqlite: the least that these tables can cost on SQLite, as layout.sql is on Postgres.
create table job (id blob primary key, queue int not null, kind text not null, payload text not null, created_at int not null);
create table ready (
  queue int not null,
  priority int not null,
  run_at int not null,
  job blob not null,
  attempt int not null default 0,
  primary key (queue, priority, run_at, job)
) without rowid;
create table lease (no integer primary key autoincrement, worker int not null, expires_at int not null, jobs text not null);
create table attempt (
  job blob not null,
  lease int not null,
  attempt int not null,
  how int not null,
  ended_at int not null,
  primary key (job, lease)
) without rowid;
create table journal (id integer primary key, at int not null, event int not null, lease int not null, jobs text not null);
