//! Each row of the fault matrix, small, under a name that says what it shows. A run whose fault did not really hit is
//! void, and a void run fails here.

mod blocked_thread;
mod instruments;
mod rows;
