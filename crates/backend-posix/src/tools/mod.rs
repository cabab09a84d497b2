//! The operator's tools for a tree: inspect, repair, convert. All of them are safe while gateways
//! serve the tree.
//!
//! [`locate`] finds the tree and the bucket that a path is in. [`tree`] walks everything in a
//! bucket, including what no key reaches. [`candidate`] is the only way in which an existing file
//! gets a record; [`lazy`] uses it while a tree is served.

mod candidate;
mod fsck;
mod history;
mod import;
mod inspect;
mod lazy;
mod link;
mod locate;
mod opening;
mod progress;
mod rehash;
mod rights;
mod tree;
mod upgrade;
mod versions;
mod volume;

pub(crate) use lazy::LazyRehash;

pub use fsck::{FsckOptions, Problem, ProblemKind, ProblemState, Usage, accept_clock, fsck};
pub use history::KeyVersion;
pub use import::{
    BucketGrants, Grant, GrantKind, ImportOptions, Imported, grants_by_versitygw, import_minio_fs,
    import_versitygw,
};
pub use inspect::{Companion, Inspection, Kind, Standing, StoredRecord, inspect};
pub use link::Link;
pub use locate::{LocateError, Located, locate, may_be_served, refuse_part_of_tree};
pub use progress::Progress;
pub use rehash::{RehashOptions, Rehashed, rehash};
pub use rights::{Deed, Entry, KernelAnswer, Lack, Refusal, ask_kernel};
pub use upgrade::{Upgrade, served_by, upgrade};
pub use versions::{PruneOptions, Pruned, Pruning, prune_versions};
pub use volume::{VolumeLack, VolumeReport, volume_of};
