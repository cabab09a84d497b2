//! All limits of this crate.

use std::time::Duration;

use backend::{DOCUMENTS_BYTES_MAX, INITIATOR_BYTES_MAX};
use s3_types::limits::{
    KEY_BYTES_MAX, OBJECT_TAGS_MAX, PART_BYTES_MAX, PARTS_MAX, TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX,
};

// Names and paths.
/// The longest name that local file systems take, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// The longest piece of a component that is too long for one name, in bytes.
pub(crate) const PIECE_BYTES_MAX: usize = 240;
/// The longest text of a note about directories, in bytes: the text of a symbolic link is shorter
/// than `PATH_MAX`, and on XFS at most 1,024 bytes.
pub(crate) const NOTE_BYTES_MAX: usize = 1023;
/// The time after a note within which the directories that it names may have been made. Later ones
/// were made by a person.
pub(crate) const NOTE_SPAN: Duration = Duration::from_mins(2);
/// The longest path that is passed to the kernel in one piece, in bytes; `PATH_MAX` is 4,096.
pub(crate) const PATH_BYTES_MAX: usize = 4000;
/// The number of times that a path is resolved again after `openat2` returned EAGAIN, because a
/// rename elsewhere made the meaning of `..` in a link uncertain (see also `resolve`).
pub(crate) const UNSURE_TRIES: usize = 32;
/// The time that an open waits for another program to give up its lease on the file.
pub(crate) const LEASE_WAIT_MAX: Duration = Duration::from_millis(100);
/// The pause between two tries to open a file with a lease.
pub(crate) const LEASE_PAUSE: Duration = Duration::from_millis(2);
/// The first pause if FUSE still has a name whose file is gone; the n-th pause is n times as long.
pub(crate) const UNSURE_PAUSE: Duration = Duration::from_micros(50);

// Races.
/// The number of times that an operation is tried if it loses a race. A try fails only if another
/// caller has made progress, so that this many failures in a row mean that something is wrong
/// (`Contended`).
pub(crate) const ATTEMPTS: u64 = 250;
/// The try from which on each waits for a short, random time, so that callers that disturb each
/// other separate.
pub(crate) const ATTEMPTS_AT_ONCE: u64 = 10;
/// The longest of the waits between tries.
pub(crate) const ATTEMPT_WAIT_MAX: Duration = Duration::from_millis(20);
/// The number of times that DeleteBucket checks whether files in staging, which writers may be
/// about to remove, are gone. It holds all locks each time. Then the bucket is `Busy`.
pub(crate) const STAGING_WAITS: usize = 30;
/// The number of times that work that may copy a whole object is tried.
pub(crate) const COPY_ATTEMPTS: u64 = 3;
/// The number of times that a file may change during a read before the read fails (`Changed`).
pub(crate) const READ_CHANGES_MAX: usize = 5;
/// The number of times that a reader looks for a record's companion before it counts as lost.
pub(crate) const COMPANION_TRIES: usize = 3;
/// The number of a bucket's lock files. Part of the protocol between gateways: all must agree.
pub(crate) const LOCKS: u64 = 64;
/// The time that an operation waits for a lock (`OutOf`). It is limited, since anyone who may write
/// to a bucket's directory can hold a lock forever.
pub(crate) const LOCK_WAIT_MAX: Duration =
    if cfg!(test) { Duration::from_secs(2) } else { Duration::from_secs(20) };
/// The time that a sweep of a bucket waits for all the locks it takes.
pub(crate) const LOCK_SWEEP_WAIT_MAX: Duration = Duration::from_secs(3);
/// The number of threads that may wait for locks of one bucket; further ones fail (`OutOf`). They
/// are among a gateway's 256 threads, of which work on large documents may hold another 32, and
/// among the [`BUCKET_THREADS_MAX`] of a bucket, so that its other requests go on. On a busy
/// machine, many of them may wait for the few requests that hold the bucket's locks.
pub(crate) const LOCK_WAITERS_MAX: usize = 128;
/// The number of threads that may wait for locks of all buckets together; see [`LOCK_WAITERS_MAX`].
pub const LOCK_WAITERS_OF_ALL: usize = 176;
/// The first pause between tries for a lock. Only the first waiter in a line tries.
pub(crate) const LOCK_PAUSE_MIN: Duration = Duration::from_micros(50);
/// The longest pause between tries for a lock.
pub(crate) const LOCK_PAUSE_MAX: Duration = Duration::from_millis(2);

// Bodies.
/// The largest size of a body that is read as a whole. It is read on the caller's thread if that
/// needs no waiting for a disk.
pub(crate) const READ_INLINE_BYTES_MAX: u64 = 256 << 10;
/// The size from which on a sequential read is read ahead.
pub(crate) const STREAM_BYTES_MIN: u64 = 4 << 20;
/// The size above which objects are not kept in memory.
pub(crate) const CACHED_OBJECT_BYTES_MAX: usize = 64 << 10;
/// The memory of a cached object besides its bytes, path and user metadata.
pub(crate) const CACHED_OBJECT_OVERHEAD_BYTES: usize = 512;
/// The number of threads, of the 256, that may work on one bucket; further work waits up to
/// [`BUCKET_WAIT_MAX`] for one of them. Buckets are spread over [`BUCKET_SHARES`] shares.
pub const BUCKET_THREADS_MAX: usize = 160;
/// The number of threads that may work on all buckets: listing them, and sweeping the root.
pub const TREE_THREADS_MAX: usize = 32;
/// The number of threads, of those of a bucket, that may be busy with long copies. Other copies
/// wait without a thread.
pub(crate) const COPY_TURNS_MAX: usize = BUCKET_THREADS_MAX / 4;
/// The number of long copies into a bucket that may wait for their turn; more are refused.
pub(crate) const COPY_WAITERS_MAX: usize = if cfg!(test) { 4 } else { 256 };
/// The time that a copy waits for its turn.
pub(crate) const COPY_WAIT_MAX: Duration = Duration::from_mins(5);
/// The number of bytes that are copied between two checks whether the copy is still wanted. A copy
/// of more bytes counts as a long one.
pub(crate) const COPY_STEP_BYTES: u64 = 64 << 20;
/// The time that work waits for one of a bucket's threads, or of those for all buckets.
pub(crate) const BUCKET_WAIT_MAX: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 20_000 });
/// The number of shares of threads. Buckets of one share use the same threads.
pub(crate) const BUCKET_SHARES: usize = 64;
/// The number of threads that may wait for volumes that are mounted as buckets; DIR's own volume
/// has one more.
pub const VOLUMES_THREADS_MAX: usize = 8;
/// The time that a volume may take to report its space: less than the two seconds after which a
/// gateway no longer waits for the reports of all.
pub(crate) const VOLUMES_WAIT_MAX: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 1800 });
/// The size up to which bodies are written at their commit.
pub(crate) const WRITE_SMALL_BYTES_MAX: usize = 256 << 10;
/// The number of bytes of a larger body that are written in one hop.
pub(crate) const HOP_BYTES: usize = 1 << 20;
/// The number of bytes that all bodies together may hold in memory; beyond it, each is written in
/// hops of [`HOP_BYTES_MIN`].
pub(crate) const HELD_BYTES_MAX: usize = 8 << 20;
/// The number of bytes that are written in one hop while all bodies hold more than
/// [`HELD_BYTES_MAX`].
pub(crate) const HOP_BYTES_MIN: usize = 48 << 10;
/// The size below which chunks are gathered, since each may hold a large network buffer.
pub(crate) const SMALL_CHUNK_BYTES: usize = 4 << 10;
/// The largest number of slices of one `pwritev`; `IOV_MAX` is 1,024.
pub(crate) const SLICES_MAX: usize = 512;
/// The size from which on a body must fit the free space when it is announced (`OutOfSpace`).
pub(crate) const ANNOUNCED_BYTES_MIN: u64 = 1 << 20;
/// The number of bytes of space that are reserved ahead of those that have arrived: an announced
/// length alone takes no space.
pub(crate) const RESERVE_AHEAD_BYTES: u64 = 64 << 20;
/// The bytes that are read at a time when this process copies.
pub(crate) const COPY_BUFFER_BYTES: usize = 1 << 20;
/// The alignment of ranges whose blocks are shared: the size of most file systems' blocks.
pub(crate) const SHARED_BLOCK_BYTES: u64 = 4 << 10;
/// The length of one `copy_file_range` call; the kernel's own limit is 2 GiB less a page.
pub(crate) const COPY_CALL_BYTES: u64 = 1 << 30;

// Records.
/// The size of the first buffer for a record, which holds nearly all; a longer one costs a second
/// call.
pub(crate) const RECORD_SHORT_BYTES: usize = 1024;
/// The largest record that the kernel takes (`XATTR_SIZE_MAX`).
pub(crate) const RECORD_BYTES_MAX: usize = 65536;
/// The largest metadata of an object in a record, including content headers, in bytes. S3's own 2
/// KB of user metadata and a request's head are far below, but other gateways may have kept more. A
/// record with more is damaged.
pub(crate) const METADATA_BYTES_MAX: usize = 64 << 10;
/// The largest number of entries of user metadata; a record with more is damaged.
pub(crate) const METADATA_ENTRIES_MAX: usize = 1000;
/// The longest ETag, in bytes; a record with a longer one is damaged. A page of a listing may have
/// a thousand.
pub(crate) const ETAG_BYTES_MAX: usize = 128;
/// The longest packed list of parts, in bytes, if each part has the longest checksum.
pub(crate) const RECORD_PARTS_BYTES_MAX: usize = PARTS_MAX as usize * (64 + 16);
/// The longest field of tags, in bytes: a unit of UTF-16 takes 3 bytes in UTF-8, and a length 2.
pub(crate) const RECORD_TAGS_BYTES_MAX: usize =
    OBJECT_TAGS_MAX * ((TAG_KEY_CHARS_MAX + TAG_VALUE_CHARS_MAX) * 3 + 4);
/// The size of all other fields together, in bytes: metadata, and 16 KiB for the rest.
pub(crate) const RECORD_REST_BYTES_MAX: usize = METADATA_BYTES_MAX + (16 << 10);
/// The number of log lines in a minute about records that can't be understood.
pub(crate) const CLOSED_LOGGED: u32 = 20;
/// The number of parts up to which a list is unpacked on the threads that serve connections.
pub(crate) const PARTS_AT_ONCE_MAX: usize = 1000;
/// The size up to which a file of the server's own is read whole.
pub(crate) const OWN_FILE_BYTES_MAX: usize = 4 << 20;
/// The number of bytes that are read of a file of the server's own that is larger than such a file
/// can be.
pub(crate) const OWN_HEAD_BYTES: usize = 64;
/// The largest file with records, in bytes: two of the longest records. A larger one is damaged, or
/// of a newer version.
pub(crate) const SIDECAR_BYTES_MAX: usize = 2 * (RECORD_PARTS_BYTES_MAX + RECORD_REST_BYTES_MAX + (4 << 10));
/// The longest path of a directory; see `PATH_BYTES_MAX` and `resolve`.
pub(crate) const SCATTERED_BYTES_MAX: usize = 16 << 10;

// Documents of buckets.
/// The longest file of documents, in bytes: the documents, and room for the owner and the table.
pub(crate) const DOCUMENTS_FILE_BYTES_MAX: usize = DOCUMENTS_BYTES_MAX + (8 << 10);
/// The longest document of identities, in bytes.
pub(crate) const IDENTITIES_FILE_BYTES_MAX: usize = 16 << 20;
/// The longest name of a document of identities, in characters.
pub(crate) const DOCUMENT_NAME_CHARS_MAX: usize = 64;
/// The memory in bytes of all states of buckets that are remembered.
pub(crate) const STATES_BYTES_MAX: usize = 16 << 20;
/// The memory of a state in bytes, without its documents.
pub(crate) const STATE_OVERHEAD_BYTES: usize = 512;
/// The memory of a state, as a multiple of its documents' size: their parsed form is kept, too.
pub(crate) const STATE_DOCUMENTS_FACTOR: usize = 3;
/// The time for which documents on a network file system count as unchanged after they were
/// checked.
pub(crate) const STATES_SEEN_MAX: Duration = Duration::from_secs(1);
/// The number of times that a missing directory of documents is looked for while it may be being
/// made.
pub(crate) const STATES_LOOKS_MAX: usize = 10;
/// The time for which the files of identities count as unchanged in place after they were looked
/// at. Looks come every half second: every other one looks at them.
pub(crate) const STAMPS_SEEN_MAX: Duration = Duration::from_millis(750);
/// The files of identities that such a look looks at; the next one goes on with those after them.
pub(crate) const STAMPS_LOOKED_AT_MAX: usize = 64;
/// The pause of a gateway that may not wait for the lock, so that others can finish making a
/// bucket.
pub(crate) const STATES_PAUSE: Duration = Duration::from_millis(20);

// Uploads in place.
/// The largest size of an assembly, the file in which the parts of an upload are put together: no
/// part may be placed beyond it. Files on ext4 may have twice as much.
pub(crate) const ASSEMBLY_BYTES_MAX: u64 = 8 << 40;
/// The size of which slots are a multiple on file systems that machines share: the largest page of
/// any of them.
pub(crate) const SHARED_PAGE_BYTES: u64 = 64 << 10;
/// The number of uploads of which a gateway remembers that it made their assemblies, on a file
/// system that other machines share.
pub(crate) const OWN_ASSEMBLIES_MAX: usize = 1024;
/// The time that a Complete waits for writes to end before it copies the parts instead. Parts that
/// are then still being written are not parts of its list, so that this is rare.
pub(crate) const SEAL_WAIT_MAX: Duration = Duration::from_secs(2);
/// The time between two checks whether the writes have ended.
pub(crate) const SEAL_WAIT_STEP: Duration = Duration::from_millis(5);
/// The number of times that a part is read if it differs from the part that a Complete names, and
/// other machines may have changed it. If they cannot, it is read once.
pub(crate) const PART_TRIES: usize = 5;
/// The pause between these readings: for clients with a wrong list, a second in total would be
/// noticeable.
pub(crate) const PART_TRIES_STEP: Duration = Duration::from_millis(50);
/// The longest unpacked list of parts of another gateway, in bytes: 10,000 numbers of up to 20
/// digits.
pub(crate) const VERSITYGW_PARTS_BYTES_MAX: u64 = 1 << 20;
/// The longest other value of another gateway that is served, in bytes: S3's metadata are not
/// longer, and longer headers break clients.
pub(crate) const FOREIGN_VALUE_BYTES_MAX: usize = 8 << 10;

// Directories.
/// The size of the buffer for one `getdents64` call of a listing: just less than the size from
/// which on malloc gets memory from the kernel each time.
pub(crate) const LISTING_READ_BYTES: usize = 120 << 10;
/// The size of the buffer for smaller directories.
pub(crate) const ENTRIES_READ_BYTES: usize = 32 << 10;
/// The number of names of the root, and of each bucket, that are checked for records in attributes
/// before a tree is served with records in files.
pub(crate) const METADATA_LOOKS_MAX: usize = 1000;
/// The number of times that a page is made again because files became directories while it was
/// made. After that, the page is made under a lock for which such files wait.
pub(crate) const LISTING_TRIES: usize = 4;
/// The number of directories that a listing keeps open, however deep it is.
pub(crate) const LISTING_OPEN_MAX: usize = 8;
/// The number of entries and directories without an object that a page may pass, or search for
/// common prefixes, before it ends early.
pub(crate) const LISTING_STEPS_MAX: usize = if cfg!(test) { 3000 } else { 100_000 };
/// The number of directories in one directory that are kept while objects are looked for below
/// them. If none of them has any, the directory is read further.
pub(crate) const LISTING_BELOW_MAX: usize = if cfg!(test) { 16 } else { 1024 };
/// The number of steps that a directory counts for if a symbolic link leads to it.
pub(crate) const LISTING_LINK_STEPS: usize = if cfg!(test) { 1 } else { 10 };

/// The number of entries below which a directory is read again for each listing, which costs as
/// little as keeping its index.
pub(crate) const INDEX_ENTRIES_MIN: usize = 128;
/// The number of entries of an index that are copied together when one of them changes.
pub(crate) const INDEX_CHUNK_ENTRIES: usize = 512;
/// The share of an index in memory that may be spare capacity, and the share that names which are
/// gone may take: one byte in this many, for each.
pub(crate) const INDEX_SLACK: usize = 8;
/// The smallest memory for the index of one directory, in bytes, so that a window serves at least a
/// few pages.
pub(crate) const INDEX_BYTES_MIN: usize = if cfg!(test) { 2 << 10 } else { 4 << 20 };
/// The share of the memory for indexes that is used in addition, for indexes of uploads: one part
/// in this many.
pub(crate) const UPLOAD_INDEX_SHARE: usize = 8;
/// The share of the memory for indexes that is used in addition, for records of listed files: one
/// part in this many.
pub(crate) const KNOWN_RECORDS_SHARE: usize = 8;
/// The memory in bytes of a record that is kept for the next listing.
pub(crate) const KNOWN_RECORD_BYTES: usize = 256;
/// The number of directories that can be read at the same time, if their inodes happen to have
/// different locks.
pub(crate) const INDEX_BUILD_LOCKS: usize = 16;
/// The number of times that a directory is read if it changes while it is read.
pub(crate) const DIRECTORY_READS_MAX: usize = 3;
/// The time that a listing waits if a name may be missing between two calls of a FUSE daemon or an
/// NFS client.
pub(crate) const HIDDEN_PAUSE: Duration = Duration::from_millis(2);
/// The number of changed names that are kept for a watched directory, to be looked up one by one,
/// as a share of the entries of its indexes: one for this many, so that they take less memory than
/// these. With more, the directory is read anew.
pub(crate) const WATCH_NAMES_SHARE: usize = 8;
/// The minimum number of such names, however small the indexes are.
pub(crate) const WATCH_NAMES_MIN: usize = 64;
/// The number of names that may change while a directory is read, and are looked up one by one.
pub(crate) const WATCH_NAMES_READ_MAX: usize = 16 << 10;
/// The share of the indexes in memory that is dropped when they take too much: one in this many. To
/// find those to drop, all are looked at.
pub(crate) const INDEX_DROP_SHARE: usize = 16;
/// The time that the thread that empties the kernel's queue of changes rests after each time. The
/// queue has room for 16,384 changes (`fs.inotify.max_queued_events`).
pub(crate) const WATCH_DRAIN_PAUSE: Duration = Duration::from_millis(50);
/// The number of bytes of the queue of changes that are read at a time.
pub(crate) const WATCH_READ_BYTES: usize = 16 << 10;
/// The number of objects on a page for which one more thread reads attributes.
pub(crate) const SUMMARIES_EACH_MIN: usize = 125;
/// The largest number of threads that read attributes for one page.
pub(crate) const SUMMARY_THREADS_MAX: usize = 8;
/// The largest number of threads that read attributes for all pages together.
pub(crate) const SUMMARY_THREADS_OF_ALL: usize = 64;
/// The number of log lines in a minute about objects that a listing can't read, and the same for
/// directories.
pub(crate) const LISTING_UNREAD_LOGGED: u32 = 20;
/// The time for which a directory must have been unchanged before it was read, so that its time
/// shows the next change. This is the value if times have fractions of a second.
pub(crate) const SETTLED_FINE: Duration = Duration::from_millis(20);
/// [`SETTLED_FINE`] if times have no fractions of a second.
pub(crate) const SETTLED_COARSE: Duration = Duration::from_secs(2);
/// The value in place of [`SETTLED_FINE`] if the clock of another machine sets the times, and the
/// difference of the clocks is known.
pub(crate) const SETTLED_REMOTE: Duration = Duration::from_secs(3);
/// The value in place of [`SETTLED_REMOTE`] if the difference of the clocks is not known.
pub(crate) const SETTLED_UNKNOWN: Duration = Duration::from_mins(1);
/// The smallest jump of a clock after which it is measured again: much less than
/// [`SETTLED_REMOTE`], and much more than clocks drift in a second.
pub(crate) const CLOCK_STEP_MIN: Duration = Duration::from_millis(500);

// Flat directories.
/// The size below which a directory is not near the limit of its index, whatever the block size.
pub(crate) const FLAT_BYTES_MIN: u64 = 1 << 20;
/// The number of new names after which the directory of one of them is checked. A prime, so that no
/// directory is missed if names go to several directories in turn.
pub(crate) const FLAT_LOOKS_EVERY: u32 = 1021;
/// The interval at which a directory that is full, or nearly so, is logged again.
pub(crate) const FLAT_LOGGED_EVERY: Duration = Duration::from_hours(1);

/// The interval at which it is logged again that an entry in DIR has a name in the form of
/// DeleteBucket's, but was not made by the server.
pub(crate) const STRANGE_ASIDE_LOGGED_EVERY: Duration = Duration::from_hours(24);

/// The pause before a bucket is searched again for the objects of overflow files, if a search could
/// not decide. It is a multiple of the age from which on the sweep removes leftovers: a week, if
/// that age is an hour.
pub(crate) const SEARCHED_AGAIN_AGES: i128 = 168;
/// The number of sweeps of a gateway, one each hour, that together look at all chains of old
/// versions: a bucket may have millions, and a leftover there is rare.
pub(crate) const CHAIN_SWEEPS: u64 = 24;

// Tools.
/// The number of foreign files that were read and may wait to be rehashed; further ones wait for
/// their next read.
pub(crate) const LAZY_QUEUE_LENGTH: usize = 4096;
/// The size up to which files are rehashed before larger ones.
pub(crate) const LAZY_SMALL_BYTES: u64 = 64 << 20;
/// The age of the last change below which files are not rehashed, since they may still be being
/// written.
pub(crate) const LAZY_AGE_MIN: Duration = Duration::from_secs(5);
/// The number of files that may wait for a tool's threads.
pub(crate) const TOOL_QUEUE_LENGTH: usize = 256;
/// The time after a write from which another write gets another mtime, on a local file system: some
/// ticks of the slowest kernel clock.
pub(crate) const TIMES_SETTLE: Duration = Duration::from_millis(50);
/// The value in place of [`TIMES_SETTLE`] on other file systems: FAT and old servers count in steps
/// of two seconds.
pub(crate) const TIMES_SETTLE_REMOTE: Duration = Duration::from_millis(2100);
/// The time that a lock may be held before this is reported: no operation holds one while it waits
/// for a client.
pub(crate) const LOCK_HELD_MAX: Duration = Duration::from_secs(5);
/// The time between two checks whether the lock is free.
pub(crate) const LOCK_POLL: Duration = Duration::from_millis(20);
/// The longest time that a start waits for an upgrade of the tree, which takes a few writes.
pub(crate) const UPGRADE_WAIT_MAX: Duration =
    if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(5) };
/// The pause between two checks whether an upgrade has ended.
pub(crate) const UPGRADE_PAUSE: Duration = Duration::from_millis(20);
/// The number of bytes that are read of the line about a gateway in `DIR/.slipway/gateways`.
pub(crate) const GATEWAY_LINE_BYTES_MAX: usize = 4096;
/// The age from which on an unlocked file counts as that of a gateway that has ended.
pub(crate) const GATEWAY_LEFT_AGE: Duration =
    if cfg!(test) { Duration::from_millis(300) } else { Duration::from_mins(1) };
/// The number of directories of a bucket that the kernel is asked about, to explain a DeleteBucket.
pub(crate) const RIGHTS_DIRECTORIES_MAX: usize = 10_000;
/// The longest file of an object lock, in bytes. A longer one is not understood.
pub(crate) const LOCK_ENTRY_BYTES_MAX: usize = 4096;
/// The longest file with the time of a tree's locks, in bytes.
pub(crate) const CLOCK_FILE_BYTES_MAX: usize = 256;
/// The longest jump ahead of the clock that object locks go by, in seconds: a lock may end that
/// much too early. It lets a machine that was off for a night go on.
pub(crate) const CLOCK_JUMP_MAX_SECONDS: i64 = 24 * 3600;
/// The seconds after which the time of a tree's locks is noted again.
pub(crate) const CLOCK_NOTE_STEP_SECONDS: i64 = 60;

const _: () = assert!(PIECE_BYTES_MAX + 10 <= NAME_BYTES_MAX);
const _: () = assert!(PATH_BYTES_MAX + NAME_BYTES_MAX > 4096 && PATH_BYTES_MAX < 4096);
const _: () = assert!(KEY_BYTES_MAX < u16::MAX as usize);
const _: () = assert!(WRITE_SMALL_BYTES_MAX < HOP_BYTES && SMALL_CHUNK_BYTES < WRITE_SMALL_BYTES_MAX);
const _: () = assert!(SMALL_CHUNK_BYTES < HOP_BYTES_MIN && HOP_BYTES_MIN < WRITE_SMALL_BYTES_MAX);
const _: () = assert!(HOP_BYTES as u64 <= ANNOUNCED_BYTES_MIN && ANNOUNCED_BYTES_MIN < RESERVE_AHEAD_BYTES);
const _: () = assert!(SIDECAR_BYTES_MAX <= OWN_FILE_BYTES_MAX);
const _: () =
    assert!(KEY_BYTES_MAX + PATH_BYTES_MAX + ETAG_BYTES_MAX < RECORD_REST_BYTES_MAX - METADATA_BYTES_MAX);
const _: () = assert!(
    KEY_BYTES_MAX + INITIATOR_BYTES_MAX + RECORD_TAGS_BYTES_MAX < RECORD_REST_BYTES_MAX - METADATA_BYTES_MAX
);
// 255 kinds, and an owner.
const _: () = assert!(DOCUMENTS_FILE_BYTES_MAX - DOCUMENTS_BYTES_MAX > 255 * 13 + 50 + 1024);
const _: () = assert!(DOCUMENTS_FILE_BYTES_MAX * STATE_DOCUMENTS_FACTOR < STATES_BYTES_MAX);
const _: () = assert!(PART_BYTES_MAX < ASSEMBLY_BYTES_MAX);
const _: () = assert!(ATTEMPTS_AT_ONCE < ATTEMPTS && COPY_ATTEMPTS < ATTEMPTS_AT_ONCE);
// The way down to where a page goes on must leave most for what comes then.
const _: () = assert!(LISTING_LINK_STEPS * KEY_BYTES_MAX < LISTING_STEPS_MAX / 2);
const _: () = assert!(LOCK_WAITERS_MAX + 32 <= BUCKET_THREADS_MAX && LOCK_WAITERS_MAX < LOCK_WAITERS_OF_ALL);
