//! Checks records beside files for files that are gone ([`orphans`]).

use backend::Result;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::check::{Check, ProblemKind};
use super::own::leftover;
use crate::error::{Op, retrying};
use crate::fs::reading::entries;
use crate::fs::removing;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{RECORDS, join};
use crate::layout::records::OF_DIRECTORY;
use crate::layout::staged::is_scattered;
use crate::records::Sidecar;
use crate::tree::bucket::Directory;
use crate::tree::trust;
use crate::write::orphans;

/// Checks the records of the files in a directory.
pub(super) fn check(check: &Check<'_>, directory: &Directory) -> Result<()> {
    let folder = match resolve::plain(directory, RECORDS, DIRECTORY) {
        Err(Errno::NOENT) => return Ok(()),
        result => result.op("open a directory's records")?,
    };
    let above = join(&directory.path, RECORDS);
    if trust::stranger_in(check.bucket.store, directory, &folder).op("stat a directory's records")?.is_some()
    {
        let explanation = "it belongs neither to the server's user nor to the owner of the directory above it: no \
            record is written there";
        check.problem(ProblemKind::Stranger, &above, explanation, None);
        return Ok(());
    }
    for (name, kind) in entries(&folder).op("read a directory's records")? {
        let path = join(&above, &name);
        if is_scattered(&name) {
            leftover(check, &folder, &above, &name);
        } else if !matches!(kind, FileType::RegularFile | FileType::Unknown) {
            check.problem(ProblemKind::Stranger, &path, "not a record", None);
        } else if name != OF_DIRECTORY
            && removing::is_older(&folder, &name, check.options.age)
            && orphans::is_one(directory, &name)?
        {
            if !Sidecar::is_known(&folder, &name).op("read a record")? {
                let explanation =
                    "no file belongs to it, and it is not a record in a form that this version knows";
                check.problem(ProblemKind::Stranger, &path, explanation, None);
                continue;
            }
            let mut repair = || retrying(|| orphans::remove(check.bucket, directory, &name));
            let explanation = "the record of a file that was removed or moved by another program; a repair removes \
                it";
            check.problem(ProblemKind::RecordOrphaned, &path, explanation, Some(&mut repair));
        }
    }
    Ok(())
}
