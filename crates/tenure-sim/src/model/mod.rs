//! The lease protocol as a state machine, searched whole.
