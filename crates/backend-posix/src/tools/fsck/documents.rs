//! Checks the documents of buckets, in `DIR/.slipway`.
//!
//! The only repair is to complete a CreateBucket that crashed. Only the operator knows what a
//! damaged document forbade, and documents without a bucket may belong to one that was moved away.

use std::path::Path;

use backend::Result;

use super::check::{FsckOptions, ProblemKind, Repair, Reporter, stays};
use crate::buckets::documents::{self, Closed, Fault};
use crate::tree::store::Store;

const UNKNOWN_OWNER: &str = "it cannot be told whose documents the bucket of this name has";

pub(super) fn check(store: &Store, path: &Path, options: &FsckOptions, report: &Reporter<'_>) -> Result<()> {
    let wanted = |name: &_| options.buckets.is_empty() || options.buckets.contains(name);
    documents::check(store, options.age, wanted, |at, fault| {
        let mut finish = || match &fault {
            Fault::Kept(name) if !documents::finish_create_of(store, name)? => Err(stays(UNKNOWN_OWNER)),
            _ => Ok(true),
        };
        let repair: Option<Repair<'_>> =
            if matches!(fault, Fault::Kept(_)) { Some(&mut finish) } else { None };
        report.problem(kind_of(&fault), path.join(at), explanation(&fault), repair);
    })
}

fn kind_of(fault: &Fault) -> ProblemKind {
    match fault {
        Fault::Stranger | Fault::Untrusted => ProblemKind::Stranger,
        Fault::NoBucket | Fault::Kept(_) | Fault::Closed(Closed::OfAnother) => {
            ProblemKind::DocumentsMisplaced
        }
        Fault::Closed(Closed::Newer | Closed::NotUnderstood(_)) => ProblemKind::DocumentsNewer,
        Fault::Closed(Closed::Unreadable(_) | Closed::Damaged | Closed::DamagedDocuments(_))
        | Fault::Damaged(_) => ProblemKind::DocumentsDamaged,
    }
}

fn explanation(fault: &Fault) -> String {
    match fault {
        Fault::Untrusted => "not as the server makes it, so that all buckets are closed to all but root: if it is the server's, \
                             it must belong to its user, and others must have no rights there (chmod 700); if not, \
                             move it away".to_owned(),
        Fault::Stranger => "not a name that the server gives there: it is kept, and ignored".to_owned(),
        Fault::NoBucket => "there is no bucket of this name; the next one that is made replaces these documents".to_owned(),
        Fault::Kept(_) => "a copy of the documents of an earlier bucket of this name, which a CreateBucket kept and a crash left; a \
                           repair puts it back, or removes it if the new bucket is there".to_owned(),
        Fault::Closed(closed) => {
            let repair = match closed {
                Closed::OfAnother => "put a document anew to have them count for this bucket, or move the file away",
                Closed::DamagedDocuments(_) => "put or delete those",
                Closed::Newer | Closed::NotUnderstood(_) => "serve it with that version",
                Closed::Unreadable(_) | Closed::Damaged => {
                    "restore the file from a backup, or move it away, which leaves the bucket without documents"
                }
            };
            format!("{}, so that the bucket is closed to all but root: {repair}", closed.sentence())
        }
        Fault::Damaged(kinds) => {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            format!("damaged: {}; put or delete it", names.join(", "))
        }
    }
}
