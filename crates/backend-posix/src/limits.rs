//! All limits of this crate in one place.

use std::time::Duration;

use s3_types::limits::{KEY_BYTES_MAX, PART_BYTES_MAX, PARTS_MAX};

// Names and paths.
/// Longest name that local file systems take.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// Longest piece of a component that is too long for one name.
pub(crate) const PIECE_BYTES_MAX: usize = 240;
/// Longest text of a note about directories: a symbolic link's is less than `PATH_MAX`, on XFS at
/// most 1,024 bytes.
pub(crate) const NOTE_BYTES_MAX: usize = 1023;
/// How long after a note the directories that it tells of may have been made. Later ones are a
/// person's.
pub(crate) const NOTE_SPAN: Duration = Duration::from_mins(2);
/// Longest path that goes to the kernel in one piece; `PATH_MAX` is 4,096.
pub(crate) const PATH_BYTES_MAX: usize = 4000;
/// `openat2` says EAGAIN where a rename elsewhere made it unsure of `..` in a link (and see
/// `resolve`).
pub(crate) const UNSURE_TRIES: usize = 32;
/// How long the first pause is where FUSE knows a name whose file is gone; others are so many times
/// as long.
pub(crate) const UNSURE_PAUSE: Duration = Duration::from_micros(50);

// Races.
/// Each try can only fail because someone else made progress, so that this many in a row mean that
/// something is wrong (`Contended`).
pub(crate) const ATTEMPTS: u64 = 250;
/// From this try on, each waits a little, by chance less or more, so that those in each other's way
/// part.
pub(crate) const ATTEMPTS_AT_ONCE: u64 = 10;
/// Longest such wait.
pub(crate) const ATTEMPT_WAIT_MAX: Duration = Duration::from_millis(20);
/// How often DeleteBucket looks for files in staging that someone is writing, which may be about to
/// go: it holds all locks each time. Then the bucket is `Busy`.
pub(crate) const STAGING_WAITS: usize = 30;
/// How often work that may copy a whole object is tried.
pub(crate) const COPY_ATTEMPTS: u64 = 3;
/// How often a file may change under a read before that is the answer (`Changed`).
pub(crate) const READ_CHANGES_MAX: usize = 5;
/// How often a reader looks again for a record's companion before it counts as lost.
pub(crate) const COMPANION_TRIES: usize = 3;
/// Lock files of a bucket. Part of the protocol between gateways: all must agree.
pub(crate) const LOCKS: u64 = 64;
/// How long an operation waits for a lock (`Busy`): whoever may write to a bucket's directory can
/// hold it for ever.
pub(crate) const LOCK_WAIT_MAX: Duration =
    if cfg!(test) { Duration::from_secs(2) } else { Duration::from_secs(20) };
/// How long a sweep of a bucket waits for all the locks it takes.
pub(crate) const LOCK_SWEEP_WAIT_MAX: Duration = Duration::from_secs(3);
/// So many threads may wait for locks of one bucket, and of all; further ones are turned away
/// (`Busy`). Of a gateway's 256, of which large documents may hold 32 as well, and of the
/// [`BUCKET_THREADS_MAX`] of a bucket, whose other requests go on. On a busy machine many of these
/// may wait for the few that have its locks.
pub(crate) const LOCK_WAITERS_MAX: usize = 128;
/// See [`LOCK_WAITERS_MAX`].
pub const LOCK_WAITERS_OF_ALL: usize = 176;
/// Pauses between tries for a lock, from the first to the last. No one but the first in a line
/// tries.
pub(crate) const LOCK_PAUSE_MIN: Duration = Duration::from_micros(50);
pub(crate) const LOCK_PAUSE_MAX: Duration = Duration::from_millis(2);

// Bodies.
/// Up to this size, bodies are read at once, on the caller's thread if that takes no waiting.
pub(crate) const READ_INLINE_BYTES_MAX: u64 = 256 << 10;
/// What is read in one go from so many bytes on is read ahead.
pub(crate) const STREAM_BYTES_MIN: u64 = 4 << 20;
/// Larger objects are not kept in memory.
pub(crate) const CACHED_OBJECT_BYTES_MAX: usize = 64 << 10;
/// What an object that is kept in memory takes beside its bytes, its path and its user metadata.
pub(crate) const CACHED_OBJECT_OVERHEAD_BYTES: usize = 512;
/// Threads that work on one bucket may have, of the 256 that there are for all; work waits so long
/// for one of them. Buckets are spread over so many shares.
pub const BUCKET_THREADS_MAX: usize = 160;
/// The same for work on all buckets: lists of them, sweeps of what belongs to none.
pub const TREE_THREADS_MAX: usize = 32;
pub(crate) const BUCKET_WAIT_MAX: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 20_000 });
pub(crate) const BUCKET_SHARES: usize = 64;
/// Threads that may wait for volumes that are mounted as buckets; one for DIR's own, besides.
pub const VOLUMES_THREADS_MAX: usize = 8;
/// How long a volume may take to tell of its room. A gateway waits for two seconds.
pub(crate) const VOLUMES_WAIT_MAX: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 1800 });
/// Up to this size, bodies are written at their commit.
pub(crate) const WRITE_SMALL_BYTES_MAX: usize = 256 << 10;
/// How much of a larger body is written in one hop.
pub(crate) const HOP_BYTES: usize = 1 << 20;
/// How much all bodies may gather and have on their way before each is written in hops of
/// [`HOP_BYTES_MIN`].
pub(crate) const HELD_BYTES_MAX: usize = 8 << 20;
/// See [`HELD_BYTES_MAX`].
pub(crate) const HOP_BYTES_MIN: usize = 48 << 10;
/// Smaller chunks are put together, since each may hold a large network buffer.
pub(crate) const SMALL_CHUNK_BYTES: usize = 4 << 10;
/// Slices of one `pwritev`; `IOV_MAX` is 1,024.
pub(crate) const SLICES_MAX: usize = 512;
/// From this size on, a body must fit the free space when it is announced (`OutOfSpace`).
pub(crate) const ANNOUNCED_BYTES_MIN: u64 = 1 << 20;
/// Space is reserved so far ahead of what has arrived: a claim alone takes no disk.
pub(crate) const RESERVE_AHEAD_BYTES: u64 = 64 << 20;
/// How much is read at a time where bytes go through this process.
pub(crate) const COPY_BUFFER_BYTES: usize = 1 << 20;
/// One `copy_file_range` call; the kernel's own limit is 2 GiB less a page.
pub(crate) const COPY_CALL_BYTES: u64 = 1 << 30;

// Records.
/// Holds nearly all records; a longer one costs a second call.
pub(crate) const RECORD_SHORT_BYTES: usize = 1024;
/// The kernel's own limit (`XATTR_SIZE_MAX`).
pub(crate) const RECORD_BYTES_MAX: usize = 65536;
/// Most metadata of an object, content headers and all, that a record holds: S3's own 2 KB of user
/// metadata are far below, and a request's head is, but what other gateways kept may be more.
/// Beyond it, a record is damaged.
pub(crate) const METADATA_BYTES_MAX: usize = 64 << 10;
/// Most entries of user metadata; the same.
pub(crate) const METADATA_ENTRIES_MAX: usize = 1000;
/// Longest ETag; the same. A page of a listing has a thousand.
pub(crate) const ETAG_BYTES_MAX: usize = 128;
/// Longest packed list of parts: each with the longest checksum.
pub(crate) const RECORD_PARTS_BYTES_MAX: usize = PARTS_MAX as usize * (64 + 16);
/// All other fields together: metadata, and 16 KiB for the rest.
pub(crate) const RECORD_REST_BYTES_MAX: usize = METADATA_BYTES_MAX + (16 << 10);
/// How many records that are not understood are told in the log, in a minute.
pub(crate) const CLOSED_TOLD: u32 = 20;
/// Up to so many parts are unpacked on the threads that serve connections.
pub(crate) const PARTS_AT_ONCE_MAX: usize = 1000;
/// Largest file of our own that is read whole.
pub(crate) const OWN_FILE_BYTES_MAX: usize = 4 << 20;
/// Longest path of a directory; see `PATH_BYTES_MAX` and `resolve`.
pub(crate) const SCATTERED_BYTES_MAX: usize = 16 << 10;

// Uploads in place.
/// Where the last slot of an assembly must end; files of ext4 may have 16 TiB.
pub(crate) const ASSEMBLY_BYTES_MAX: u64 = 8 << 40;
/// What slots are a multiple of on file systems that machines share: the largest page of any of
/// them.
pub(crate) const SHARED_PAGE_BYTES: u64 = 64 << 10;
/// So many uploads are remembered whose parts this gateway puts in place, where others share the
/// file system.
pub(crate) const FOUNDED_MAX: usize = 1024;
/// How long a Complete waits for writes to end before it copies the parts instead. Parts that are
/// under way then are none of its own, so that it is rare.
pub(crate) const SEAL_WAIT_MAX: Duration = Duration::from_secs(2);
/// How often it looks.
pub(crate) const SEAL_WAIT_STEP: Duration = Duration::from_millis(5);
/// How often a part that is not what a Complete says is read again where other machines may have
/// changed it.
pub(crate) const PART_TRIES: usize = 5;
/// How long that waits each time: a second in all would be felt by those whose list is wrong.
pub(crate) const PART_TRIES_STEP: Duration = Duration::from_millis(50);
/// Most of another gateway's list of parts, unpacked: 10,000 numbers of up to 20 digits.
pub(crate) const PEER_PARTS_BYTES_MAX: u64 = 1 << 20;
/// Longest of its other values that is served: metadata of S3 are no longer, and longer headers
/// break clients.
pub(crate) const PEER_VALUE_BYTES_MAX: usize = 8 << 10;

// Directories.
/// One `getdents64` call of a listing fills this much; just under what malloc gets from the kernel
/// by itself each time.
pub(crate) const LISTING_READ_BYTES: usize = 120 << 10;
/// The same where directories are small.
pub(crate) const ENTRIES_READ_BYTES: usize = 32 << 10;
/// So many names of the root, and of each bucket, are looked at for records in attributes before a
/// tree is served with records in files.
pub(crate) const METADATA_LOOKS_MAX: usize = 1000;
/// A page is made so often while files become directories; then these wait for it.
pub(crate) const LISTING_TRIES: usize = 4;
/// A listing keeps so many directories open, however deep it is.
pub(crate) const LISTING_OPEN_MAX: usize = 8;
/// A page ends early that has passed so many entries and directories without an object, or searched
/// so many for common prefixes.
pub(crate) const LISTING_STEPS_MAX: usize = if cfg!(test) { 3000 } else { 100_000 };
/// As how many of them a directory counts that a symbolic link leads to.
pub(crate) const LISTING_LINK_STEPS: usize = if cfg!(test) { 1 } else { 10 };

/// Directories with fewer entries are read anew for each listing: it costs as little as to keep
/// them.
pub(crate) const INDEX_ENTRIES_MIN: usize = 128;
/// Entries of an index that are copied together when one of them changes.
pub(crate) const INDEX_CHUNK_ENTRIES: usize = 512;
/// An index that changes has at most one of so many bytes to spare, and one that belongs to names
/// that are gone.
pub(crate) const INDEX_SLACK: usize = 8;
/// Least memory for the index of one directory, so that a window serves a few pages at least.
pub(crate) const INDEX_BYTES_MIN: usize = if cfg!(test) { 2 << 10 } else { 4 << 20 };
/// What of the memory for indexes there is besides for those of uploads, and for records of files
/// that were listed: one part in so many.
pub(crate) const UPLOAD_INDEX_SHARE: usize = 8;
pub(crate) const KNOWN_RECORDS_SHARE: usize = 8;
/// What a record takes that is kept for the next listing.
pub(crate) const KNOWN_RECORD_BYTES: usize = 256;
/// So many directories are read at the same time, if chance wills.
pub(crate) const INDEX_BUILD_LOCKS: usize = 16;
/// A directory that changes while it is read is read so often.
pub(crate) const DIRECTORY_READS_MAX: usize = 3;
/// How long a listing waits where a name may be missing between two calls of a FUSE daemon or an
/// NFS client.
pub(crate) const HIDDEN_PAUSE: Duration = Duration::from_millis(2);
/// So many names that changed are looked up again, one by one, before a directory is read anew.
pub(crate) const WATCH_NAMES_MAX: usize = 4096;
/// What is read of the queue of changes at a time.
pub(crate) const WATCH_READ_BYTES: usize = 16 << 10;
/// Attributes of a page are read by another thread from so many on, up to so many threads for a
/// page, and for all pages.
pub(crate) const SUMMARIES_EACH_MIN: usize = 125;
pub(crate) const SUMMARY_THREADS_MAX: usize = 8;
pub(crate) const SUMMARY_THREADS_OF_ALL: usize = 64;
/// How many objects and directories that a listing can't read are told in the log, of each kind and
/// in a minute.
pub(crate) const LISTING_UNREAD_TOLD: u32 = 20;
/// How long a directory must not have changed before it was read, for its time to tell the next
/// change: where times have fractions of a second, where they have none, and where another
/// machine's clock makes them, known or not.
pub(crate) const SETTLED_FINE: Duration = Duration::from_millis(20);
pub(crate) const SETTLED_COARSE: Duration = Duration::from_secs(2);
pub(crate) const SETTLED_REMOTE: Duration = Duration::from_secs(3);
pub(crate) const SETTLED_UNKNOWN: Duration = Duration::from_mins(1);
/// A clock that is set by more than so much is measured anew: much less than [`SETTLED_REMOTE`],
/// much more than clocks drift in a second.
pub(crate) const CLOCK_STEP_MIN: Duration = Duration::from_millis(500);

// Flat directories.
/// No directory of less is near the limit of its index, whatever the block size.
pub(crate) const FLAT_BYTES_MIN: u64 = 1 << 20;
/// The directory of one new name of so many is looked at. A prime, so that names which go to
/// several directories in turn do not hide one of them.
pub(crate) const FLAT_LOOKS_EVERY: u32 = 1021;
/// How often a directory that is full, or nearly, is told of in the log.
pub(crate) const FLAT_TOLD_EVERY: Duration = Duration::from_hours(1);

/// How often the log tells of what has a name as DeleteBucket gives it, and is none of ours.
pub(crate) const STRANGE_ASIDE_TOLD_EVERY: Duration = Duration::from_hours(24);

// Tools.
/// How many foreign files that were read wait to be rehashed; further ones are met again.
pub(crate) const LAZY_QUEUE_LENGTH: usize = 4096;
/// Files up to this size are rehashed before larger ones.
pub(crate) const LAZY_SMALL_BYTES: u64 = 64 << 20;
/// Files that changed since are not rehashed: someone may still be writing.
pub(crate) const LAZY_AGE_MIN: Duration = Duration::from_secs(5);
/// How many files wait for a tool's threads.
pub(crate) const TOOL_QUEUE_LENGTH: usize = 256;
/// A write that comes so long after another has another mtime on a local file system: some ticks of
/// the slowest kernel clock.
pub(crate) const TIMES_SETTLE: Duration = Duration::from_millis(50);
/// The same elsewhere: FAT and old servers count in steps of two seconds.
pub(crate) const TIMES_SETTLE_REMOTE: Duration = Duration::from_millis(2100);
/// How long a lock may be held until someone should look who has it: no operation keeps one while
/// it waits for a client.
pub(crate) const LOCK_HELD_MAX: Duration = Duration::from_secs(5);
/// How often one looks whether it is free.
pub(crate) const LOCK_POLL: Duration = Duration::from_millis(20);

const _: () = assert!(PIECE_BYTES_MAX + 10 <= NAME_BYTES_MAX);
const _: () = assert!(PATH_BYTES_MAX + NAME_BYTES_MAX > 4096 && PATH_BYTES_MAX < 4096);
const _: () = assert!(KEY_BYTES_MAX < u16::MAX as usize);
const _: () = assert!(WRITE_SMALL_BYTES_MAX < HOP_BYTES && SMALL_CHUNK_BYTES < WRITE_SMALL_BYTES_MAX);
const _: () = assert!(SMALL_CHUNK_BYTES < HOP_BYTES_MIN && HOP_BYTES_MIN < WRITE_SMALL_BYTES_MAX);
const _: () = assert!(HOP_BYTES as u64 <= ANNOUNCED_BYTES_MIN && ANNOUNCED_BYTES_MIN < RESERVE_AHEAD_BYTES);
// A sidecar holds two records.
const _: () = assert!(2 * (RECORD_PARTS_BYTES_MAX + RECORD_REST_BYTES_MAX + (4 << 10)) <= OWN_FILE_BYTES_MAX);
const _: () =
    assert!(KEY_BYTES_MAX + PATH_BYTES_MAX + ETAG_BYTES_MAX < RECORD_REST_BYTES_MAX - METADATA_BYTES_MAX);
const _: () = assert!(PART_BYTES_MAX < ASSEMBLY_BYTES_MAX);
const _: () = assert!(ATTEMPTS_AT_ONCE < ATTEMPTS && COPY_ATTEMPTS < ATTEMPTS_AT_ONCE);
// The way down to where a page goes on must leave most for what comes then.
const _: () = assert!(LISTING_LINK_STEPS * KEY_BYTES_MAX < LISTING_STEPS_MAX / 2);
const _: () = assert!(LOCK_WAITERS_MAX + 32 <= BUCKET_THREADS_MAX && LOCK_WAITERS_MAX < LOCK_WAITERS_OF_ALL);
