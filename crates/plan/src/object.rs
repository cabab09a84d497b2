//! Computes what one object takes: space, inodes, operations of the volumes.

use serde::Serialize;

use crate::load::Durability;
use crate::protection::{Local, Spread};
use crate::storage::Storage;
use crate::units::{BLOCK, RECORD};

/// The bytes of an inode, with the record of its object (45 to 50 bytes, which fit it), and of a
/// directory's entry.
const INODE: f64 = 512.0 + 64.0;

/// The space and the operations that one object takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Footprint {
    /// Its size.
    pub bytes: f64,
    /// Bytes on all volumes, with protection, inode and directory entry.
    pub bytes_on_volumes: f64,
    /// Inodes in the file system, as `df -i` counts.
    pub inodes: f64,
    /// Bytes that one PUT writes to all volumes: those of `bytes_on_volumes`, and a block of each
    /// journal.
    pub put_bytes: f64,
    /// Operations of all volumes for one PUT, at most: PUTs that wait at the same time share some.
    pub put_operations: f64,
    /// Bytes that one GET reads, if nothing is in memory.
    pub get_bytes: f64,
    /// Operations for one GET.
    pub get_operations: f64,
    /// Operations for a HEAD.
    pub head_operations: f64,
    /// Bytes that a PUT sends to nodes, its own included.
    pub spread_bytes: f64,
}

impl Footprint {
    /// The footprint of an object of `bytes`.
    pub fn of(bytes: f64, storage: &Storage, durability: Durability) -> Self {
        let (local, volumes) = (storage.local, storage.volumes);
        let blocks = (bytes / BLOCK).ceil();
        let pieces = storage.spread.pieces(blocks);
        let spread_blocks: f64 = pieces.iter().map(|(pieces, blocks)| pieces * blocks).sum();
        let all: f64 = pieces.iter().map(|(pieces, blocks)| pieces * local.blocks(*blocks, volumes)).sum();
        // Inodes and directories have as many copies as may get lost, and one.
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

/// The number of copies within a node of something that is too small to be striped.
fn copies_within(local: Local, volumes: u32) -> f64 {
    match local {
        Local::Raidz(parity) => f64::from(parity) + 1.0,
        _ => 1.0 / local.efficiency(volumes),
    }
}

/// Operations on a node's volumes that write `bytes`.
fn writes(storage: &Storage, bytes: f64) -> f64 {
    let (local, most) = (storage.local, storage.volume.io_bytes_most);
    let small = local.operations().0 * (bytes / most).ceil();
    match local {
        Local::Raidz(parity) => rows(storage.volumes, parity, most, bytes),
        // Whole stripes need not be read before.
        Local::Raid(_) => {
            let striped = (bytes / local.efficiency(storage.volumes) / most).ceil();
            small.min(striped.max(f64::from(storage.volumes)))
        }
        Local::None | Local::Mirror(_) => small,
    }
}

/// Operations on volumes that hold a record of ZFS together: as many as it has sectors with their
/// parity, or all. Neighbouring records are joined.
fn rows(volumes: u32, parity: u32, io_bytes_most: f64, bytes: f64) -> f64 {
    let parity = f64::from(parity);
    let sectors = (bytes.min(RECORD) / BLOCK).ceil();
    let width = (sectors + parity).min(f64::from(volumes));
    width * (bytes / (width - parity).max(1.0) / io_bytes_most).ceil()
}

/// Operations that read a file's blocks.
fn reads(storage: &Storage, blocks: f64) -> f64 {
    let (bytes, most) = (|blocks: f64| blocks * BLOCK, storage.volume.io_bytes_most);
    let of = |blocks: f64| match storage.local {
        // Its parity is not read, but with it a pool has the operations of one volume, as is known.
        Local::Raidz(parity) => rows(storage.volumes, parity, most, bytes(blocks)),
        _ => (bytes(blocks) / most).ceil(),
    };
    match storage.spread {
        // Strips of parity are not read, nor copies.
        Spread::Strips { .. } => {
            let pieces = storage.spread.pieces(blocks);
            pieces[..2].iter().map(|(pieces, blocks)| pieces * of(*blocks)).sum()
        }
        Spread::None | Spread::Copies(_) => of(blocks),
    }
}
