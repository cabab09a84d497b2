//! HTTP/1.1 answers, read as they come in (RFC 9112, sections 4 and 6). No I/O.

mod framing;
mod head;
mod malformed;

pub use framing::Framing;
pub use head::{Head, read_head};
pub use malformed::Malformed;
