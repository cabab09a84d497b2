//! Limits on what a server can send, and the sizes of what is read and sent at a time.

use std::time::Duration;

/// The longest head of an answer. A longer one is a protocol error.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// The most header fields of an answer. More are a protocol error.
pub const HEADERS_MAX: usize = 100;
/// The most interim answers (`100 Continue`) before the final one. More are a protocol error.
pub const INTERIM_ANSWERS_MAX: usize = 10;
/// The longest line of a chunk's size, and the longest trailers. Longer ones are a protocol error.
pub const LINE_BYTES_MAX: usize = 8 << 10;
/// The most bytes of a body that are read at a time.
pub const READ_BYTES: usize = 64 << 10;
/// The number of bytes that are read at a time while the head is expected.
pub const HEAD_READ_BYTES: usize = 8 << 10;
/// The length of the chunks of an aws-chunked body, except the last.
pub const AWS_CHUNK_BYTES: usize = 64 << 10;
/// The time that a request with `Expect: 100-continue` waits for the server's answer before it
/// sends its body nevertheless, as RFC 9110 (10.1.1) wants it.
pub const CONTINUE_TIME: Duration = Duration::from_secs(1);
