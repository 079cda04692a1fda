//! The rules of tenure-core, from outside.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod one_job;

mod apply_properties;
mod apply_rules;
mod cron_dst;
mod cron_properties;
mod dedupe;
mod gate_properties;
mod lifecycle_doc;
mod run_properties;
mod run_world;
