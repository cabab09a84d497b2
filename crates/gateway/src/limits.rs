//! Limits of the gateway, with the error each one gives. Those of the protocol are in
//! `s3_wire::limits`.
//!
//! Memory that a client can occupy:
//!
//! - a connection: about 8 KiB, unless it asks for something, or did in the last second
//!   ([`PARK_AFTER`]); then also what hyper reads into ([`READ_BUFFER_BYTES`], which it allocates
//!   as needed). With TLS, buffers of about 40 KiB;
//! - a download in progress: one piece of [`FILE_CHUNK_BYTES`], and as much again in hyper's write
//!   buffer, or kept to be filled again; nothing while the page cache has its file;
//! - an upload in progress: what its writer gathers before it writes (for files, `backend_posix`
//!   says how much: 1 MiB, and 1 MiB on its way to the disk; far less once all uploads hold 8 MiB),
//!   which is also what waits for its digests ([`DIGEST_STREAM_BYTES_MAX`]);
//! - a listing: a page of at most 1000 keys (1 MiB and attributes, at the very most), and pieces of
//!   its document of [`DOCUMENT_PIECE_BYTES`];
//! - a document: up to [`SMALL_DOCUMENT_BYTES_MAX`] whole, or pieces of a larger one
//!   ([`LARGE_DOCUMENTS_MAX`] at a time); and its contents: 1000 keys, or 10,000 parts.
//!
//! The number of connections and of requests in progress is limited by configuration.
//!
//! On a machine with many cores and much memory, raise these together: [`DIGEST_WAITING_BYTES_MAX`]
//! (which MD5 and SHA-256 have each; the number of passes follows that of the cores) and
//! `HELD_BYTES_MAX` of `backend_posix`, [`CONNECTIONS_FEW`], [`BLOCKING_THREADS_MAX`] with
//! `BUCKET_THREADS_MAX` and `LOCK_WAITERS_MAX`.

use std::time::Duration;

/// The largest number of actions of IAM and STS that are performed at a time (`Throttling`). Each
/// holds a form of at most 64 KiB.
pub const ACTIONS_MAX: usize = 128;
/// The actions that are performed at a time for those who do not sign, and prove who they are
/// otherwise (`Throttling`): they have places of their own, so that strangers hold none of the
/// others. Each may wait for an OpenID provider or a directory.
pub const UNSIGNED_ACTIONS_MAX: usize = 32;
/// The bytes of forms that unsigned actions hold together (`Throttling`). A form has a place among
/// [`UNSIGNED_ACTIONS_MAX`] only once it is whole: a client that sends slowly keeps nobody out.
pub const UNSIGNED_BYTES_MAX: usize = 8 << 20;
/// The longest time that the form of an action may take to arrive (`ValidationError`). Meanwhile it
/// holds a place among [`ACTIONS_MAX`].
pub const ACTION_BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// The statements that a page of SimulatePrincipalPolicy or SimulateCustomPolicy looks at, counted
/// once for each result; with more, the page ends early. An answer names each twice, in some 600
/// bytes.
pub const SIMULATED_STATEMENTS_MAX: usize = 5_000;
/// The bytes of a request's head or body that hyper may buffer. A longer head is refused
/// (`RequestHeaderSectionTooLarge`, connection closed). A body costs a sixth less CPU than with
/// half of this.
pub const READ_BUFFER_BYTES: usize = 64 << 10;
/// The same limit as [`READ_BUFFER_BYTES`], while more than [`CONNECTIONS_FEW`] connections are
/// open. A body that is being received holds about three of these buffers.
pub const READ_BUFFER_BYTES_CROWDED: usize = 36 << 10;
/// The number of bytes that are read at a time while more than [`CONNECTIONS_FEW`] connections are
/// open, also on connections that were opened before. It is one less than the size at which hyper
/// allocates more. A whole buffer is held as long as any piece of it is needed.
pub const READ_BYTES_CROWDED: u64 = (32 << 10) - 1;
/// The number of connections above which new ones get smaller buffers
/// ([`READ_BUFFER_BYTES_CROWDED`]).
pub const CONNECTIONS_FEW: usize = 100;
/// The number of bytes of a request that are read first, after its connection waited for it without
/// buffers.
pub const FIRST_BYTES_MAX: usize = 2 << 10;
/// The time after which an idle connection gives up its buffers; it may also take twice as long.
pub const PARK_AFTER: Duration = Duration::from_millis(500);
/// The number of connections above which each gives up its buffers after every answer. This costs
/// some CPU, but memory that so many connections have used is never returned to the system.
pub const CONNECTIONS_MANY: usize = 1000;
/// The largest number of header lines of a request; more are refused
/// (`RequestHeaderSectionTooLarge`, connection closed).
pub const HEADER_LINES_MAX: usize = 200;
/// The largest map of headers that a thread keeps for its next answer, in headers; its memory is 4
/// KiB.
pub const SPARE_HEADERS_MAX: usize = 32;
/// The largest number of attempts to change a bucket's documents, if each loses against another
/// change (`OperationAborted`).
pub const DOCUMENT_CHANGES_MAX: usize = 10;
/// The largest number of buckets that are looked at for one page of ListBuckets, for a requester
/// who may not see all. Then the page ends, with a token.
pub const LIST_BUCKETS_LOOKED_AT_MAX: usize = 10_000;
/// The smallest number of buckets that ListBuckets requests from the storage at a time, for such a
/// requester.
pub const LIST_BUCKETS_ASKED_FOR_MIN: usize = 1000;
/// The size up to which the MD5 and SHA-256 of a body are computed where it is received; a larger
/// one goes to `body::digest_service`.
pub const DIGEST_INLINE_BYTES_MAX: u64 = 32 << 10;
/// The size below which chunks are gathered before they are digested, since each may hold a large
/// network buffer.
pub const DIGEST_SMALL_CHUNK_BYTES: usize = 4 << 10;
/// The number of bytes of one body that may wait for its MD5, or for its SHA-256, in addition to
/// one chunk. The body is not read further until there is room.
pub const DIGEST_STREAM_BYTES_MAX: usize = 1 << 20;
/// The number of bytes of one body that may wait in any case, however many bodies there are.
pub const DIGEST_STREAM_BYTES_MIN: usize = 32 << 10;
/// The number of waiting bytes at which a body is digested; half of the bytes that may wait, if
/// that is less.
pub const DIGEST_DUE_BYTES: usize = 256 << 10;
/// The number of bytes of all bodies that may wait for their MD5, or for their SHA-256. It may be
/// more only if each body has no more than [`DIGEST_STREAM_BYTES_MIN`].
pub const DIGEST_WAITING_BYTES_MAX: usize = 8 << 20;
/// The number of cores for each thread that digests, separately for MD5 and SHA-256. Such a thread
/// digests several times faster than these cores receive.
pub const DIGEST_CORES_PER_PASS: usize = 4;
/// The size above which documents are parsed while they arrive, each on a thread
/// ([`LARGE_DOCUMENTS_MAX`] at a time; the others wait).
pub const SMALL_DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// The largest number of documents that are parsed while they arrive. It is small compared to
/// [`BLOCKING_THREADS_MAX`], since a slow client holds its thread.
pub const LARGE_DOCUMENTS_MAX: usize = 32;
/// The minimum interval between two log lines that explain refusals of one kind for one bucket.
pub const EXPLAINED_EVERY: Duration = Duration::from_secs(1);
/// The time that a large document waits for its turn (`SlowDown`).
pub const LARGE_DOCUMENT_WAIT: Duration = Duration::from_secs(20);
/// The time that a large document may take to arrive (`RequestTimeout`).
pub const LARGE_DOCUMENT_TIME: Duration = Duration::from_mins(1);
/// The size of the pieces in which a large document goes to its thread.
pub const DOCUMENT_HOP_BYTES: usize = 64 << 10;
/// The length above which a document with many entries (a listing) is sent in pieces, which have
/// about this length.
pub const DOCUMENT_PIECE_BYTES: usize = 512 << 10;
/// The number of pieces of a download that may be kept to be filled again.
pub const FILE_CHUNKS_KEPT: usize = 2;
/// The bytes of an object that are read from its file at a time.
pub const FILE_CHUNK_BYTES: u64 = 256 << 10;
/// The number of remaining bytes from which on a download is sent from the page cache, if its file
/// is there.
pub const SENDFILE_BYTES_MIN: u64 = 256 << 10;
/// The number of bytes of a file that go to the socket at a time without being read (`sendfile`).
pub const FILE_PART_BYTES: usize = 1 << 20;
/// [`FILE_PART_BYTES`] for file systems without `sendfile`.
pub const FILE_COPY_BYTES: usize = 64 << 10;
/// The number of bytes at the end of each download that are always read, and held back until it is
/// known that the file has not changed.
pub const FILE_END_BYTES: u64 = 64 << 10;
/// The number of bytes of an unwanted request body that are read and dropped to keep the
/// connection; if there are more, it is closed.
pub const DRAIN_BYTES_MAX: usize = 64 << 10;
/// The time that reading and dropping an unwanted body may take.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);
/// The number of bytes that are read and dropped after the last response of a connection that is
/// closed early, so that the client can read that response instead of getting a reset.
pub const LINGER_BYTES_MAX: usize = 4 << 20;
/// The time that reading and dropping bytes after the last response may take.
pub const LINGER_TIME_MAX: Duration = Duration::from_secs(5);
/// The time that a stopping server waits for the first request of a connection, for the rest of a
/// request's head, for a TLS handshake and for a body that is read and dropped, and that a client
/// has to read error answers. None of these is a request in progress.
pub const STOP_TIME_MAX: Duration = Duration::from_secs(1);
/// The number of connections beyond `--max-connections` that may linger at a time, each with a
/// descriptor, for [`LINGER_TIME_MAX`]. Others are closed as soon as they are answered.
pub const REFUSED_LINGERING_MAX: usize = 64;
/// The rate at which a body must arrive on average once [`BODY_GRACE`] has passed
/// (`RequestTimeout`), and at which a response must be read (the connection is closed).
pub const BODY_BYTES_PER_SECOND_MIN: u64 = 4 << 10;
/// The time that a body may take in any case, however slow it is.
pub const BODY_GRACE: Duration = Duration::from_mins(1);
/// The largest number of connections to `--ops-listen` at a time. A further one replaces the oldest
/// that waits for its client.
pub const OPERATIONS_CONNECTIONS_MAX: usize = 64;
/// The time limit for a connection to `--ops-listen` to send its head.
pub const OPERATIONS_HEAD_TIME_MAX: Duration = Duration::from_secs(3);
/// The time that a connection to `--ops-listen` may last.
pub const OPERATIONS_TIME_MAX: Duration = Duration::from_secs(30);
/// The largest age of the count of file descriptors that operators see. Counting many takes
/// milliseconds, so that it is not done each time.
pub const DESCRIPTORS_AGE_MAX: Duration = Duration::from_secs(1);
/// The memory that unread lines of the log may take, and as much again while they are written.
/// Further lines are lost, and counted.
pub const LOG_BUFFER_BYTES_MAX: usize = 1 << 20;
/// The interval at which writing the log is tried again if the kernel does not report that there is
/// room.
pub const LOG_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time between two writes of a log of lines to its file.
pub const ACCESS_LOG_INTERVAL: Duration = Duration::from_millis(200);
/// The number of bytes in a buffer at which it is written at once.
pub const ACCESS_LOG_WAKE_BYTES: usize = 64 << 10;
/// The number of bytes in a buffer at which it takes no more lines: the file is too slow, and lines
/// are dropped. There are at most sixteen buffers.
pub const ACCESS_LOG_BUFFER_BYTES_MAX: usize = 4 << 20;
/// The size of such a buffer of an audit log that must lose nothing. When it has half of
/// [`ACCESS_LOG_BUFFER_BYTES_MAX`], no request begins any more; those in progress have the rest: a
/// DeleteObjects may leave 12 MiB of lines, and at most [`LARGE_DOCUMENTS_MAX`] are read at a time.
pub const KEPT_LOG_BUFFER_BYTES_MAX: usize = 512 << 20;
/// The number of bytes of a header's value that are logged.
pub const ACCESS_LOG_FIELD_BYTES_MAX: usize = 1 << 10;
/// The number of bytes of a method that are logged.
pub const ACCESS_LOG_METHOD_BYTES_MAX: usize = 32;
/// The initial capacity of a line in bytes: most lines need no more.
pub const ACCESS_LOG_LINE_BYTES: usize = 1 << 10;
/// The largest memory of a line that a thread keeps for its next line.
pub const ACCESS_LOG_SPARE_BYTES_MAX: usize = 4 << 10;
/// The shortest time between two log lines about lost lines.
pub const ACCESS_LOG_WARN_INTERVAL: Duration = Duration::from_mins(1);
/// The longest time between two transfers of spans to the collector.
pub const TRACES_INTERVAL: Duration = Duration::from_secs(1);
/// The number of bytes in a buffer, about 800 spans, at which it is sent at once.
pub const TRACES_WAKE_BYTES: usize = 512 << 10;
/// The number of bytes in a buffer at which it takes no more spans: the collector is too slow, and
/// spans are dropped. There are at most sixteen buffers, and the same amount may be on its way.
pub const TRACES_BUFFER_BYTES_MAX: usize = 4 << 20;
/// The initial capacity of a span in bytes: most spans need no more.
pub const TRACES_SPAN_BYTES: usize = 1 << 10;
/// The time that a collector may take for one request.
pub const TRACES_POST_TIME_MAX: Duration = Duration::from_secs(10);
/// The time for which spans that a collector did not accept are sent again.
pub const TRACES_RETRY_TIME_MAX: Duration = Duration::from_mins(1);
/// The first pause before spans are sent again.
pub const TRACES_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause before spans are sent again.
pub const TRACES_PAUSE_MAX: Duration = Duration::from_secs(10);
/// The time that a stop waits for the collector to accept the remaining spans.
pub const TRACES_STOP_TIME_MAX: Duration = Duration::from_secs(2);
/// The number of bytes of a collector's answer that are read, including its head.
pub const TRACES_ANSWER_BYTES_MAX: usize = 64 << 10;
/// The shortest time between two log lines that spans are not accepted, or are accepted again.
pub const TRACES_WARN_INTERVAL: Duration = Duration::from_mins(1);
/// The number of characters of a collector's reason that are logged.
pub const TRACES_WHY_CHARACTERS_MAX: usize = 500;
/// The length in bytes above which `tracestate` is not passed on. W3C requires at least 512.
pub const TRACE_STATE_BYTES_MAX: usize = 512;
/// The time limit for the storage to report that it is ready.
pub const READY_TIME_MAX: Duration = Duration::from_secs(2);
/// The number of threads for calls that may block on a file system.
pub const BLOCKING_THREADS_MAX: usize = 256;
/// The number of those threads that may wait for documents of identities; further calls wait. At
/// most one look and one change run at a time, besides looks that were given up.
pub const IDENTITIES_THREADS_MAX: usize = 4;
/// The age of the state of identities from which on a gateway is not ready: some looks have failed,
/// or one takes very long.
pub const IDENTITIES_READY_AGE_MAX: Duration = Duration::from_secs(5);
/// The time that the check of a store outside the tree may take at the start.
pub const IDENTITIES_TRIAL_TIME_MAX: Duration = Duration::from_secs(5);
/// The time that a stopping server has to write the last uses of keys.
pub const IDENTITIES_STOP_TIME_MAX: Duration = Duration::from_secs(2);
/// The number of new errors in documents of identities that are logged at once.
pub const IDENTITIES_TROUBLES_SHOWN: usize = 20;
/// The largest number of bytes of a text with secrets: master keys, credentials for a store of
/// identities, or the password for a directory.
pub const SECRET_TEXT_BYTES_MAX: usize = 64 << 10;
/// The time that a command may take which prints a secret, such as `--master-key-command`.
pub const SECRET_COMMAND_TIME_MAX: Duration = Duration::from_secs(10);
/// The time between two checks whether such a command has ended.
pub const SECRET_COMMAND_PAUSE: Duration = Duration::from_millis(20);
/// The number of objects that are deleted at the same time for one DeleteObjects.
pub const DELETE_CONCURRENCY: usize = 16;
/// The time for which a computation of many steps, such as the decisions about the keys of
/// DeleteObjects, has a thread before others have a turn.
pub const SHARE_OF_THREAD: Duration = Duration::from_millis(2);
/// The time after which a CompleteMultipartUpload or a copy starts its response with white space,
/// if it still runs. It sends more white space at this interval, to keep the connection from timing
/// out.
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
        + IDENTITIES_THREADS_MAX
        < BLOCKING_THREADS_MAX
);
const _: () = assert!(backend_posix::LOCK_WAITERS_OF_ALL + LARGE_DOCUMENTS_MAX < BLOCKING_THREADS_MAX);
