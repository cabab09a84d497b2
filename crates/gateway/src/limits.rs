//! Limits of the gateway, with the error each one gives. Those of the protocol are in
//! `s3_wire::limits`.
//!
//! Memory that a client can bind:
//!
//! - a connection: about 8 KiB, unless it asks for something, or did in the last second
//!   ([`PARK_AFTER`]); then what hyper reads into as well ([`READ_BUFFER_BYTES`], which it
//!   allocates as needed). TLS buffers of some 40 KiB;
//! - a download in progress: one piece of [`FILE_CHUNK_BYTES`], and as much again in hyper's write
//!   buffer, or kept to be filled again; or nothing, where the page cache has its file;
//! - an upload in progress: what its writer gathers before it writes (for files, `backend_posix`
//!   says how much: 1 MiB, and 1 MiB on its way to the disk; far less once all uploads hold 8 MiB),
//!   which is also what waits for its digests ([`DIGEST_STREAM_BYTES_MAX`]);
//! - a listing: a page of at most 1000 keys (1 MiB and attributes, at the very most), and pieces of
//!   its document of [`DOCUMENT_PIECE_BYTES`];
//! - a document: up to [`SMALL_DOCUMENT_BYTES_MAX`] whole, or pieces of a larger one
//!   ([`LARGE_DOCUMENTS_MAX`] at a time); and what it says: 1000 keys, or 10,000 parts.
//!
//! The number of connections and of requests in progress is limited by configuration.
//!
//! On a machine with many cores and much memory, what to raise together:
//! [`DIGEST_WAITING_BYTES_MAX`] (of MD5 and of SHA-256 each; passes are as many as cores ask for)
//! and `HELD_BYTES_MAX` of `backend_posix`, [`CONNECTIONS_FEW`], [`BLOCKING_THREADS_MAX`] with
//! `BUCKET_THREADS_MAX` and `LOCK_WAITERS_MAX`.

use std::time::Duration;

/// What hyper may buffer of a request head or of a body; a longer head is refused
/// (`RequestHeaderSectionTooLarge`, connection closed). A body costs a sixth less CPU than with
/// half of that.
pub const READ_BUFFER_BYTES: usize = 64 << 10;
/// The same where more than [`CONNECTIONS_FEW`] are open: a body that is received holds about three
/// of these.
pub const READ_BUFFER_BYTES_CROWDED: usize = 36 << 10;
/// Most that is then read at a time, on connections that were made before, too: one byte less than
/// what hyper goes on to allocate. All of a buffer is held as long as any piece of it is wanted.
pub const READ_BYTES_CROWDED: u64 = (32 << 10) - 1;
/// See [`READ_BUFFER_BYTES_CROWDED`].
pub const CONNECTIONS_FEW: usize = 100;
/// How much is read of a request at first, where a connection has waited for it without buffers.
pub const FIRST_BYTES_MAX: usize = 2 << 10;
/// A connection that is idle gives up its buffers after one to two of these.
pub const PARK_AFTER: Duration = Duration::from_millis(500);
/// Beyond so many, a connection gives them up after each answer, which costs some CPU: memory that
/// so many had once is not given back.
pub const CONNECTIONS_MANY: usize = 1000;
/// Most header lines of a request; more are refused (`RequestHeaderSectionTooLarge`, connection
/// closed).
pub const HEADER_LINES_MAX: usize = 200;
/// Up to this size, the MD5 and SHA-256 of a body are computed where it is received; a larger one
/// goes to `body::digest_service`.
pub const DIGEST_INLINE_BYTES_MAX: u64 = 32 << 10;
/// Smaller chunks are put together, since each may hold a large network buffer.
pub const DIGEST_SMALL_CHUNK_BYTES: usize = 4 << 10;
/// Most that one body has waiting for its MD5, or its SHA-256, beside one chunk (it is read no
/// further until there is room).
pub const DIGEST_STREAM_BYTES_MAX: usize = 1 << 20;
/// So much it may have waiting, however many there are.
pub const DIGEST_STREAM_BYTES_MIN: usize = 32 << 10;
/// A body with so much waiting is digested at once, one with half of its room sooner.
pub const DIGEST_DUE_BYTES: usize = 256 << 10;
/// What all bodies have waiting for their MD5, or for their SHA-256, unless there are more than
/// have so little each.
pub const DIGEST_WAITING_BYTES_MAX: usize = 8 << 20;
/// One thread digests for so many cores, MD5 and SHA-256 each; it does so at several times the rate
/// that they receive.
pub const DIGEST_CORES_PER_PASS: usize = 4;
/// Documents above this are parsed while they come, each on a thread ([`LARGE_DOCUMENTS_MAX`] at a
/// time; the rest wait).
pub const SMALL_DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// See [`SMALL_DOCUMENT_BYTES_MAX`]. Few against [`BLOCKING_THREADS_MAX`], since a slow client
/// holds its thread.
pub const LARGE_DOCUMENTS_MAX: usize = 32;
/// How often a refusal of one kind is logged of a bucket, where the operator is told why.
pub const EXPLAINED_EVERY: Duration = Duration::from_secs(1);
/// How long a large document waits for its turn (`SlowDown`).
pub const LARGE_DOCUMENT_WAIT: Duration = Duration::from_secs(20);
/// How long a large document may take to arrive (`RequestTimeout`).
pub const LARGE_DOCUMENT_TIME: Duration = Duration::from_mins(1);
/// A large document goes to its thread in pieces of this size.
pub const DOCUMENT_HOP_BYTES: usize = 64 << 10;
/// A document with many entries (a listing) that is longer than this is sent in pieces of about
/// this length.
pub const DOCUMENT_PIECE_BYTES: usize = 512 << 10;
/// So many pieces of a download may wait to be filled again.
pub const FILE_CHUNKS_KEPT: usize = 2;
/// How much of an object is read from its file at a time.
pub const FILE_CHUNK_BYTES: u64 = 256 << 10;
/// A download of which so much is left, or more, goes on from the page cache if it is there.
pub const SENDFILE_BYTES_MIN: u64 = 256 << 10;
/// Most of a file that goes to the socket at a time without being read (`sendfile`).
pub const FILE_PART_BYTES: usize = 1 << 20;
/// The same, of file systems that have no `sendfile`.
pub const FILE_COPY_BYTES: usize = 64 << 10;
/// The end of each download is read, and held back until the file is known to be what it was.
pub const FILE_END_BYTES: u64 = 64 << 10;
/// How much of an unwanted request body is read and dropped to keep the connection; beyond, it is
/// closed.
pub const DRAIN_BYTES_MAX: usize = 64 << 10;
/// How long that may take.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);
/// How much is read and dropped after the last response of a connection that is closed early, so
/// that the client gets to read that response instead of a reset.
pub const LINGER_BYTES_MAX: usize = 4 << 20;
/// How long that may take.
pub const LINGER_TIME_MAX: Duration = Duration::from_secs(5);
/// Once the server is to stop: how long it waits for the first request of a connection, for the
/// rest of a request's head, of a TLS handshake, and of a body that is read and dropped, and how
/// long a client has to read error answers. None of these is a request in progress.
pub const STOP_TIME_MAX: Duration = Duration::from_secs(1);
/// Connections past `--max-connections` that may linger at a time: so many more descriptors may be
/// open, each for [`LINGER_TIME_MAX`]. Beyond, they are closed as soon as they are answered.
pub const REFUSED_LINGERING_MAX: usize = 64;
/// A body must come at this rate on average once [`BODY_GRACE`] has passed (`RequestTimeout`), and
/// a response be read at it (the connection is closed).
pub const BODY_BYTES_PER_SECOND_MIN: u64 = 4 << 10;
/// How long a body may take whatever its rate.
pub const BODY_GRACE: Duration = Duration::from_mins(1);
/// Connections to `--ops-listen` at a time. A further one takes the place of the oldest that waits
/// for its client.
pub const OPERATIONS_CONNECTIONS_MAX: usize = 64;
/// How long such a connection may take for its head.
pub const OPERATIONS_HEAD_TIME_MAX: Duration = Duration::from_secs(3);
/// How long such a connection may last.
pub const OPERATIONS_TIME_MAX: Duration = Duration::from_secs(30);
/// How old the count of file descriptors may be that operators are told: where there are many, it
/// takes milliseconds.
pub const DESCRIPTORS_AGE_MAX: Duration = Duration::from_secs(1);
/// Lines of the log that nobody has read yet take no more memory than this, and as much again on
/// its way. Further ones are lost, and counted.
pub const LOG_BUFFER_BYTES_MAX: usize = 1 << 20;
/// How often it is tried to write them, should the kernel not tell that there is room.
pub const LOG_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often lines of the access log go to its file, at least.
pub const ACCESS_LOG_INTERVAL: Duration = Duration::from_millis(200);
/// They go earlier once a buffer has so many bytes.
pub const ACCESS_LOG_WAKE_BYTES: usize = 64 << 10;
/// A buffer with so many bytes takes no more lines: the file does not keep up, and they are
/// dropped. There are at most sixteen buffers.
pub const ACCESS_LOG_BUFFER_BYTES_MAX: usize = 4 << 20;
/// Of a header's value, so much is told.
pub const ACCESS_LOG_FIELD_BYTES_MAX: usize = 1 << 10;
/// And of a method.
pub const ACCESS_LOG_METHOD_BYTES_MAX: usize = 32;
/// Room that a line is given from the start: most need no more.
pub const ACCESS_LOG_LINE_BYTES: usize = 1 << 10;
/// How often it is logged that lines were lost.
pub const ACCESS_LOG_WARN_INTERVAL: Duration = Duration::from_mins(1);
/// How often spans go to the collector, at least.
pub const TRACES_INTERVAL: Duration = Duration::from_secs(1);
/// They go earlier once a buffer has so many bytes: about 800 spans.
pub const TRACES_WAKE_BYTES: usize = 512 << 10;
/// A buffer with so many bytes takes no more spans: the collector does not keep up, and they are
/// dropped. There are at most sixteen buffers, and as much again on its way.
pub const TRACES_BUFFER_BYTES_MAX: usize = 4 << 20;
/// Room that a span is given from the start: most need no more.
pub const TRACES_SPAN_BYTES: usize = 1 << 10;
/// How long a collector may take for one request.
pub const TRACES_POST_TIME_MAX: Duration = Duration::from_secs(10);
/// How long spans are sent again that a collector did not take.
pub const TRACES_RETRY_TIME_MAX: Duration = Duration::from_mins(1);
/// How long to wait before that, at first.
pub const TRACES_PAUSE_MIN: Duration = Duration::from_secs(1);
/// And at most.
pub const TRACES_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a stop waits for the collector to take what is left.
pub const TRACES_STOP_TIME_MAX: Duration = Duration::from_secs(2);
/// Most of a collector's answer that is read, its head included.
pub const TRACES_ANSWER_BYTES_MAX: usize = 64 << 10;
/// How often the log says at most that spans are not taken, and that they are again.
pub const TRACES_WARN_INTERVAL: Duration = Duration::from_mins(1);
/// Of what a collector gives as its reason, so much is logged.
pub const TRACES_WHY_CHARACTERS_MAX: usize = 500;
/// A longer `tracestate` is not passed on (W3C's least is 512).
pub const TRACE_STATE_BYTES_MAX: usize = 512;
/// How long the storage may take to say that it is ready.
pub const READY_TIME_MAX: Duration = Duration::from_secs(2);
/// Threads for calls that may block on a file system.
pub const BLOCKING_THREADS_MAX: usize = 256;
/// Objects deleted at the same time for one DeleteObjects.
pub const DELETE_CONCURRENCY: usize = 16;
/// A CompleteMultipartUpload or copy that takes longer than this starts its response with white
/// space, and goes on so, to keep the connection from timing out.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

const _: () = assert!(
    READ_BUFFER_BYTES_CROWDED > s3_wire::limits::HEADER_SECTION_BYTES_MAX + s3_wire::limits::TARGET_BYTES_MAX
);
const _: () = assert!(
    DIGEST_SMALL_CHUNK_BYTES < DIGEST_STREAM_BYTES_MIN && DIGEST_STREAM_BYTES_MIN <= DIGEST_STREAM_BYTES_MAX
);
const _: () = assert!(DIGEST_DUE_BYTES <= DIGEST_STREAM_BYTES_MAX / 2);
const _: () = assert!(DRAIN_BYTES_MAX <= LINGER_BYTES_MAX);
const _: () = assert!(LARGE_DOCUMENTS_MAX * 8 <= BLOCKING_THREADS_MAX);
const _: () = assert!(DOCUMENT_PIECE_BYTES <= 512 << 10, "with its last entry, a piece stays below 1 MiB");
const _: () = assert!(FILE_CHUNK_BYTES <= 1 << 20);
const _: () = assert!(SENDFILE_BYTES_MIN <= FILE_CHUNK_BYTES, "what is left and not sent is one read");
const _: () = assert!(FILE_END_BYTES < SENDFILE_BYTES_MIN);
// Work on one bucket, waiting for locks of all, and documents together leave threads to others.
const _: () = assert!(
    backend_posix::BUCKET_THREADS_MAX
        + backend_posix::TREE_THREADS_MAX
        + backend_posix::VOLUMES_THREADS_MAX
        + LARGE_DOCUMENTS_MAX
        < BLOCKING_THREADS_MAX
);
const _: () = assert!(backend_posix::LOCK_WAITERS_OF_ALL + LARGE_DOCUMENTS_MAX < BLOCKING_THREADS_MAX);
