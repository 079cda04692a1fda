//! Private servers for tests and benches, made from the system's binaries, that cannot outlive the process they serve.
//!
//! # Layout
//! - [`postgres_server`]: a PostgreSQL cluster, and `psql`
//! - [`postgres_backup`]: a copy of its files, started as a clone, as a standby, or by recovery
//! - [`pgbouncer`]: a PgBouncer before it
//! - [`rabbitmq_server`]: a RabbitMQ
//! - [`test_database`]: a database of a test's own
//! - `disk`: a small disk of a server's own
//! - `guarded`: how a server ends with us, whatever ends us

mod disk;
mod guarded;
pub mod pgbouncer;
pub mod postgres_backup;
pub mod postgres_server;
pub mod rabbitmq_server;
pub mod test_database;
