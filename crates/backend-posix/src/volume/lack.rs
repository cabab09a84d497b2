//! The abilities that a file system may lack, and the sentence for each.

/// An ability that a file system may lack. The first variants are required; for the others the
/// server has a substitute. docs/SEMANTICS.md has one table of all of them, which a test compares
/// with this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    Case,
    Forms,
    Exclusive,
    Naming,
    Links,
    Replacing,
    Locks,
    Flushes,
    Attributes,
    Nameless,
    Exchange,
    StaleNames,
    LocksElsewhere,
    OneMachine,
    Inodes,
    Modes,
    FineTimes,
    Reflinks,
    Reserving,
    Room,
}

impl Lack {
    /// All lacks, the required ones first.
    pub const ALL: [Self; 20] = [
        Self::Case,
        Self::Forms,
        Self::Exclusive,
        Self::Naming,
        Self::Links,
        Self::Replacing,
        Self::Locks,
        Self::Flushes,
        Self::Attributes,
        Self::Nameless,
        Self::Exchange,
        Self::StaleNames,
        Self::LocksElsewhere,
        Self::OneMachine,
        Self::Inodes,
        Self::Modes,
        Self::FineTimes,
        Self::Reflinks,
        Self::Reserving,
        Self::Room,
    ];

    /// Returns the name in documents and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Case => "names by case",
            Self::Forms => "names by bytes",
            Self::Exclusive => "exclusive creation",
            Self::Naming => "naming",
            Self::Links => "hard links",
            Self::Replacing => "replacing",
            Self::Locks => "locks",
            Self::Flushes => "flushes",
            Self::Attributes => "attributes",
            Self::Nameless => "nameless files",
            Self::Exchange => "exchange",
            Self::StaleNames => "steady names",
            Self::LocksElsewhere => "locks between mounts",
            Self::OneMachine => "one machine",
            Self::Inodes => "lasting inodes",
            Self::Modes => "modes",
            Self::FineTimes => "fine times",
            Self::Reflinks => "shared blocks",
            Self::Reserving => "reserving",
            Self::Room => "room",
        }
    }

    /// True if a file system that lacks this is not served, unless an option allows it.
    pub const fn is_refused(self) -> bool {
        matches!(
            self,
            Self::Case
                | Self::Forms
                | Self::Exclusive
                | Self::Naming
                | Self::Links
                | Self::Replacing
                | Self::Locks
                | Self::Flushes
                | Self::Attributes
        )
    }

    /// Returns the sentence as [`Lack::sentence`] does, for a bucket in a directory that is served
    /// already, so that the place of its records cannot be chosen any more.
    pub const fn sentence_of_bucket(self) -> &'static str {
        match self {
            Self::Attributes => {
                "its file system has no user extended attributes, in which the records of objects are kept (mount it \
                 with user_xattr, or use another file system)"
            }
            other => other.sentence(),
        }
    }

    /// Returns the sentence for the operator.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Case => {
                "its file system does not distinguish the names KEY and key, so that a PUT of one would replace the \
                 other (to serve it nevertheless, for keys that do not differ in case alone: --allow-same-names)"
            }
            Self::Forms => {
                "its file system does not distinguish an accented letter from the same letter written as two \
                 characters (Unicode normalization), so that a PUT of one key would replace another (to serve it \
                 nevertheless: --allow-same-names)"
            }
            Self::Exclusive => {
                "its file system does not report whether a file already existed when it is created (O_EXCL)"
            }
            Self::Naming => {
                "a file that was created without a name (O_TMPFILE) cannot be given a name there: before Linux 6.10 \
                 this needs a mounted /proc, or the capability CAP_DAC_READ_SEARCH"
            }
            Self::Links => {
                "its file system has no hard links, which are needed to give a new object its name without replacing \
                 another"
            }
            Self::Replacing => "its file system cannot replace a file by renaming another to its name",
            Self::Locks => {
                "its file system has no working locks (flock), which are needed to order concurrent writes of one \
                 key (Lustre: mount it with -o flock)"
            }
            Self::Flushes => {
                "its file system cannot flush directories, so that a power cut may lose names of files (to serve it \
                 nevertheless: --durability data)"
            }
            Self::Attributes => {
                "its file system has no user extended attributes, in which the records of objects are kept (mount it \
                 with user_xattr, use another file system, or keep records in files with --metadata sidecar)"
            }
            Self::Nameless => {
                "files that are being written have names (no O_TMPFILE): a crash leaves them until the sweep"
            }
            Self::Exchange => {
                "a file becomes a directory in two steps (no RENAME_EXCHANGE): other programs may find its name \
                 missing for a moment, and making an object takes its lock"
            }
            Self::StaleNames => {
                "a name that is being replaced may be missing for a moment: a request that finds no object looks again \
                 with the lock"
            }
            Self::LocksElsewhere => {
                "file locks may not work between two mounts of this file system: let all gateways of this directory use \
                 one mount, unless its documentation says that flock works between mounts"
            }
            Self::OneMachine => {
                "it is not known to be changed by this machine alone: less is kept in memory, and reads wait on threads of \
                 their own"
            }
            Self::Inodes => "inode numbers do not last: ETags of foreign files are by size and time alone",
            Self::Modes => "modes of files are not kept: who else may read or write is up to the mount",
            Self::FineTimes => {
                "times are in whole seconds: an edit by another program that keeps the size, within a second of a \
                 write through S3, is not seen"
            }
            Self::Reflinks => "files cannot share blocks: copies take time and space",
            Self::Reserving => "space cannot be reserved (fallocate): a full disk is noticed when it is full",
            Self::Room => "it does not tell how much space is free",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEMANTICS has one table of lacks, with the sentences that operators see.
    #[test]
    fn the_table_of_lacks_is_this_one() {
        let text = include_str!("../../../../docs/SEMANTICS.md");
        let table = text.split("| lack | | what is said of it |").nth(1).expect("the table");
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let rows: Vec<_> = rows.collect();
        let expected = Lack::ALL.map(|lack| {
            let what = if lack.is_refused() { "refused" } else { "done another way" };
            format!("| {} | {what} | {} |", lack.name(), lack.sentence())
        });
        assert_eq!(rows, expected);
    }
}
