//! Computes how much space, how many inodes and how many operations of volumes one object takes.

use serde::Serialize;

use crate::load::Durability;
use crate::protection::{Local, Spread};
use crate::storage::Storage;
use crate::units::{BLOCK, RECORD};

/// The number of bytes of an inode and of a directory entry. The object's record, of 45 to 50
/// bytes, fits in the inode.
const INODE: f64 = 512.0 + 64.0;

/// The space and the operations that one object takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Footprint {
    /// The object's size in bytes.
    pub bytes: f64,
    /// The number of bytes on all volumes, including protection, inode and directory entry.
    pub bytes_on_volumes: f64,
    /// The number of inodes in the file system, as `df -i` counts.
    pub inodes: f64,
    /// The number of bytes that one PUT writes to all volumes: `bytes_on_volumes`, and a block of
    /// each journal.
    pub put_bytes: f64,
    /// The largest number of operations on all volumes for one PUT. PUTs that wait at the same time
    /// share some of them.
    pub put_operations: f64,
    /// The number of bytes that one GET reads from volumes, if none of them are in memory.
    pub get_bytes: f64,
    /// The number of operations on volumes for one GET.
    pub get_operations: f64,
    /// The number of operations on volumes for one HEAD.
    pub head_operations: f64,
    /// The number of bytes that a PUT sends to the nodes that store them, including the gateway's
    /// own node.
    pub spread_bytes: f64,
}

impl Footprint {
    /// Computes the footprint of an object of `bytes`.
    pub fn of(bytes: f64, storage: &Storage, durability: Durability) -> Self {
        let (local, volumes) = (storage.local, storage.volumes);
        let blocks = (bytes / BLOCK).ceil();
        let pieces = storage.spread.pieces(blocks);
        let spread_blocks: f64 = pieces.iter().map(|(pieces, blocks)| pieces * blocks).sum();
        let all: f64 = pieces.iter().map(|(pieces, blocks)| pieces * local.blocks(*blocks, volumes)).sum();
        // One more copy of inodes and directories is kept than copies may be lost.
        let copies = f64::from(storage.spread.survives() + 1);
        let metadata = copies * INODE * copies_within(local, volumes);
        let journals = match durability {
            Durability::None => 0.0,
            Durability::Full | Durability::Data => copies,
        };
        let data: f64 = pieces.iter().map(|(pieces, blocks)| pieces * writes(storage, blocks * BLOCK)).sum();
        Self {
            bytes,
            bytes_on_volumes: all * BLOCK + metadata,
            inodes: 1.0,
            put_bytes: all * BLOCK + metadata + journals * BLOCK * copies_within(local, volumes),
            put_operations: data + journals * local.operations().0,
            get_bytes: blocks * BLOCK,
            get_operations: 1.0 + reads(storage, blocks),
            head_operations: 1.0,
            spread_bytes: spread_blocks * BLOCK,
        }
    }
}

/// Returns how many copies a node keeps of data that is too small to be striped over its volumes.
fn copies_within(local: Local, volumes: u32) -> f64 {
    match local {
        Local::Raidz(parity) => f64::from(parity) + 1.0,
        _ => 1.0 / local.efficiency(volumes),
    }
}

/// Returns the number of operations on a node's volumes that write `bytes`.
fn writes(storage: &Storage, bytes: f64) -> f64 {
    let (local, most) = (storage.local, storage.volume.io_bytes_most);
    let small = local.operations().0 * (bytes / most).ceil();
    match local {
        Local::Raidz(parity) => rows(storage.volumes, parity, most, bytes),
        // Old data need not be read before whole stripes are written.
        Local::Raid(_) => {
            let striped = (bytes / local.efficiency(storage.volumes) / most).ceil();
            small.min(striped.max(f64::from(storage.volumes)))
        }
        Local::None | Local::Mirror(_) => small,
    }
}

/// Returns the number of operations on volumes that read or write `bytes` in consecutive ZFS
/// records. A record takes as many volumes as it has sectors, including those of parity, or all
/// volumes. Operations on neighbouring records are joined.
fn rows(volumes: u32, parity: u32, io_bytes_most: f64, bytes: f64) -> f64 {
    let parity = f64::from(parity);
    let sectors = (bytes.min(RECORD) / BLOCK).ceil();
    let width = (sectors + parity).min(f64::from(volumes));
    width * (bytes / (width - parity).max(1.0) / io_bytes_most).ceil()
}

/// Returns the number of operations that read a file's blocks.
fn reads(storage: &Storage, blocks: f64) -> f64 {
    let (bytes, most) = (|blocks: f64| blocks * BLOCK, storage.volume.io_bytes_most);
    let of = |blocks: f64| match storage.local {
        // Parity is not read, but counted: a group of RAID-Z is known to have the operations of one
        // volume.
        Local::Raidz(parity) => rows(storage.volumes, parity, most, bytes(blocks)),
        _ => (bytes(blocks) / most).ceil(),
    };
    match storage.spread {
        // Strips of parity and further copies are not read.
        Spread::Strips { .. } => {
            let pieces = storage.spread.pieces(blocks);
            pieces[..2].iter().map(|(pieces, blocks)| pieces * of(*blocks)).sum()
        }
        Spread::None | Spread::Copies(_) => of(blocks),
    }
}
