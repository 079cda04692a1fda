//! A job on its way in, as people write it: one JSON object, the same over HTTP and in a file of `tenure enqueue --file`.

pub mod draft;
pub mod ids;
pub mod line;

pub use draft::Draft;
pub use ids::Ids;
pub use line::{BadLine, read};
