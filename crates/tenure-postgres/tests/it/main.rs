//! Tenure's Postgres store against a real server.

mod database;

mod contract;
