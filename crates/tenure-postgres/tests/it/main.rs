//! Tenure's Postgres store against a real server.

mod database;

mod contract;
mod fences;
mod sink;
mod sql_api;
mod tls;
