//! Limits on what a server may send, and the sizes of reads and of chunks.

use std::time::Duration;

/// The longest head of an answer, in bytes. A longer head is a protocol error.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// The largest number of header fields of an answer. More fields are a protocol error.
pub const HEADERS_MAX: usize = 100;
/// The largest number of interim answers (`100 Continue`) before the final one. More of them are a
/// protocol error.
pub const INTERIM_ANSWERS_MAX: usize = 10;
/// The longest line that gives a chunk's size, and the longest trailers, in bytes. Longer ones are
/// a protocol error.
pub const LINE_BYTES_MAX: usize = 8 << 10;
/// The largest number of bytes of a body that are read at a time.
pub const READ_BYTES: usize = 64 << 10;
/// The number of bytes that are read at a time until the head has come in.
pub const HEAD_READ_BYTES: usize = 8 << 10;
/// The length in bytes of each chunk of an aws-chunked body, except the last.
pub const AWS_CHUNK_BYTES: usize = 64 << 10;
/// The time that a request with `Expect: 100-continue` waits for the server's answer. After it, the
/// body is sent without an answer, as RFC 9110 (10.1.1) requires.
pub const CONTINUE_TIME: Duration = Duration::from_secs(1);
