//! All limits of this crate in one place.

use std::time::Duration;

use s3_types::limits::{KEY_BYTES_MAX, PARTS_MAX};

// Names and paths.
/// Longest name that local file systems take.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// Longest piece of a component that is too long for one name.
pub(crate) const PIECE_BYTES_MAX: usize = 240;
/// Longest text of a note about directories: a symbolic link's is less than `PATH_MAX`, on XFS at most 1,024 bytes.
pub(crate) const NOTE_BYTES_MAX: usize = 1023;
/// Longest path that goes to the kernel in one piece; `PATH_MAX` is 4,096.
pub(crate) const PATH_BYTES_MAX: usize = 4000;
/// `openat2` says EAGAIN where a rename elsewhere made it unsure of `..` in a link.
pub(crate) const UNSURE_TRIES: usize = 32;

// Races.
/// Each try can only fail because someone else made progress, so that this many in a row mean that something is wrong
/// (`Conflict`).
pub(crate) const ATTEMPTS: u64 = 250;
/// From this try on, each waits a little, by chance less or more, so that those in each other's way part.
pub(crate) const ATTEMPTS_AT_ONCE: u64 = 10;
/// Longest such wait.
pub(crate) const ATTEMPT_WAIT_MAX: Duration = Duration::from_millis(20);
/// How often work that may copy a whole object is tried.
pub(crate) const COPY_ATTEMPTS: u64 = 3;
/// How often a file may change under a read before that is the answer (`Changed`).
pub(crate) const READ_CHANGES_MAX: usize = 5;
/// How often a reader looks again for a record's companion before it counts as lost.
pub(crate) const COMPANION_TRIES: usize = 3;
/// Lock files of a bucket. Part of the protocol between gateways: all must agree.
pub(crate) const LOCKS: u64 = 64;

// Bodies.
/// Up to this size, bodies are read at once, on the caller's thread if that takes no waiting.
pub(crate) const READ_INLINE_BYTES_MAX: u64 = 256 << 10;
/// Up to this size, bodies are written at their commit.
pub(crate) const WRITE_SMALL_BYTES_MAX: usize = 256 << 10;
/// How much of a larger body is written in one hop.
pub(crate) const HOP_BYTES: usize = 1 << 20;
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
/// Largest file of our own that is read whole.
pub(crate) const OWN_FILE_BYTES_MAX: usize = 4 << 20;

// Directories.
/// One `getdents64` call of a listing fills this much; just under what malloc gets from the kernel by itself each time.
pub(crate) const LISTING_READ_BYTES: usize = 120 << 10;
/// The same where directories are small.
pub(crate) const ENTRIES_READ_BYTES: usize = 32 << 10;
/// A listing keeps so many directories open, however deep it is.
pub(crate) const LISTING_OPEN_MAX: usize = 8;

const _: () = assert!(PIECE_BYTES_MAX + 10 <= NAME_BYTES_MAX);
const _: () = assert!(PATH_BYTES_MAX + NAME_BYTES_MAX > 4096 && PATH_BYTES_MAX < 4096);
const _: () = assert!(KEY_BYTES_MAX < u16::MAX as usize);
const _: () = assert!(WRITE_SMALL_BYTES_MAX < HOP_BYTES && SMALL_CHUNK_BYTES < WRITE_SMALL_BYTES_MAX);
const _: () = assert!(HOP_BYTES as u64 <= ANNOUNCED_BYTES_MIN && ANNOUNCED_BYTES_MIN < RESERVE_AHEAD_BYTES);
// A record of as many parts as there can be, each with the longest checksum, and 64 KiB for the rest.
const _: () = assert!(PARTS_MAX as usize * (64 + 16) + RECORD_BYTES_MAX <= OWN_FILE_BYTES_MAX);
const _: () = assert!(ATTEMPTS_AT_ONCE < ATTEMPTS && COPY_ATTEMPTS < ATTEMPTS_AT_ONCE);
