//! The worker runtime in paused time, with seeded faults.
