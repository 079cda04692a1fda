//! Tenure's Postgres store against a real server.

mod database;
mod two_tenants;

mod contract;
mod fences;
mod roles;
mod roles_work;
mod sink;
mod sql_api;
mod tls;
mod walls;
