//! The rules of tenure-core, from outside.

mod one_job;

mod apply_properties;
mod apply_rules;
mod gate_properties;
mod lifecycle_doc;
