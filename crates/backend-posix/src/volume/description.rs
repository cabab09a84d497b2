//! The description of a volume: the abilities of the file system on a device (decision 0035).
//!
//! Some abilities follow from its kind, and are known at once; the others are
//! [tried](super::trials) before any data of a client are written. A fact that was not tried has
//! the more cautious of its values, since gateways that know different amounts must agree.

use rustix::fd::AsFd;

use super::kind::Kind;
use super::lack::Lack;
use super::mounts::Mounted;
use super::ordering;
use crate::error::Io;
use crate::fs::file_info;

/// The answer to whether a file system has a property, as far as it was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fact {
    Yes,
    No,
    #[default]
    Untried,
}

impl Fact {
    pub const fn of(is_so: bool) -> Self {
        if is_so { Self::Yes } else { Self::No }
    }

    /// Returns yes if the property is known by kind; otherwise it has to be tried.
    const fn if_known(is_so: bool) -> Self {
        if is_so { Self::Yes } else { Self::Untried }
    }

    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes)
    }

    pub const fn is_no(self) -> bool {
        matches!(self, Self::No)
    }
}

/// The rule by which the file system compares names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// Names differ if their bytes differ.
    Bytes,
    /// `KEY` and `key` are one name.
    NoCase,
    /// An accented letter is the same as the letter followed by a combining accent.
    Normalized,
    Untried,
}

/// The answer to whether a file can be made without a name (`O_TMPFILE`), and get one later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nameless {
    Yes,
    No,
    /// A file without a name can be made, but can never get a name.
    ForEver,
    Untried,
}

/// The processes that a lock (`flock`) excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locks {
    NoOne,
    /// The lock excludes all processes of this machine.
    Machine,
    /// The lock excludes the processes of all machines that have the file system mounted.
    Machines,
    /// The lock excludes at least the processes that use the same mount.
    Unknown,
}

/// The fineness with which the time of a file's last change distinguishes changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changes {
    /// Each change gives the file another time, if the previous one was read.
    Each,
    /// The time is that of a tick of this kernel's clock. A tick lasts some milliseconds.
    Ticks,
    /// The time is that of another machine's clock.
    Remote,
}

/// The answer to whether reads may make the caller wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    NeverWait,
    /// The kernel reports with `RWF_NOWAIT` whether a read would wait.
    Tell,
    MayWait,
}

/// The description of a volume. A small value, which is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Volume {
    pub kind: Kind,
    pub names: Names,
    /// The answer to whether there are hard links.
    pub links: Fact,
    /// The answer to whether `O_EXCL` shows that a file existed already.
    pub exclusive: Fact,
    /// The answer to whether a rename replaces a file.
    pub replaces: Fact,
    /// The answer to whether directories can be flushed.
    pub flushes: Fact,
    pub locks: Locks,
    /// The answer to whether a descriptor must be open for writing to get an exclusive lock.
    pub locks_need_writing: Fact,
    pub nameless: Nameless,
    /// The answer to whether renames support `RENAME_NOREPLACE`.
    pub no_replace: Fact,
    /// The answer to whether renames support `RENAME_EXCHANGE`. Without it a file becomes a
    /// directory in two steps, between which its name is missing.
    pub exchange: Fact,
    /// See [`Kind::asks_by_name`].
    pub asks_by_name: bool,
    /// See [`Kind::lingers`].
    pub lingers: bool,
    /// See [`Kind::has_stale_names`].
    pub stale_names: bool,
    /// The answer to whether there are user extended attributes.
    pub attributes: Fact,
    /// The answer to whether modes of files are kept.
    pub modes: Fact,
    /// The answer to whether the times at which files were made are kept.
    pub births: Fact,
    /// See [`Kind::inodes_last`].
    pub inodes_last: bool,
    pub changes: Changes,
    /// The answer to whether times have fractions of a second.
    pub fine_times: Fact,
    /// The answer to whether naming or renaming a file sets its ctime to the present.
    pub rename_changes: Fact,
    pub reads: Reads,
    /// True if changes of names and files reach the disk in the order in which they were made. Then
    /// a flush of one covers all earlier ones, except for file contents that were not written out.
    pub ordered: bool,
    /// The answer to whether files can share blocks (`FICLONE`).
    pub reflinks: Fact,
    /// The answer to whether `statfs` reports the free space.
    pub counts_blocks: Fact,
    /// See [`Kind::compresses`].
    pub compresses: bool,
    /// The answer to whether space can be reserved ahead of contents (`fallocate`) without changing
    /// how these are stored.
    pub reserves: Fact,
}

/// The properties that options require of a volume, in addition to those that are always required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// True if the volume must distinguish names such as `KEY` and `key`.
    pub names: bool,
    pub flushes: bool,
    pub attributes: bool,
}

impl Volume {
    /// Returns the description of a volume about which nothing is known.
    pub fn unknown() -> Self {
        Self::of_kind(Kind::Unknown)
    }

    /// Returns the description of the volume that a file is on, as far as it is known without
    /// trying.
    pub fn of(file: impl AsFd) -> Io<Self> {
        let device = file_info::of(&file)?.device;
        Self::on(device, file)
    }

    /// Returns the description as [`Volume::of`] does, for a file on `device`.
    pub fn on(device: u64, file: impl AsFd) -> Io<Self> {
        let kind = Kind::of(file)?;
        let ordered = ordering::keeps_order(kind, device);
        let locks = locks_of(kind, Mounted::of(device).as_ref());
        Ok(Self { locks, ordered, ..Self::of_kind(kind) })
    }

    /// Returns the description that follows from the kind of a file system.
    pub fn of_kind(kind: Kind) -> Self {
        let local = kind.is_local();
        Self {
            kind,
            names: Names::Untried,
            links: Fact::Untried,
            exclusive: Fact::Untried,
            replaces: Fact::Untried,
            flushes: Fact::if_known(local),
            locks: locks_of(kind, None),
            locks_need_writing: Fact::Untried,
            nameless: Nameless::Untried,
            no_replace: Fact::Untried,
            exchange: Fact::if_known(kind.exchanges()),
            asks_by_name: kind.asks_by_name(),
            lingers: kind.lingers(),
            stale_names: kind.has_stale_names(),
            attributes: Fact::Untried,
            modes: Fact::Untried,
            births: Fact::Untried,
            inodes_last: kind.inodes_last(),
            changes: changes_of(kind),
            fine_times: Fact::Untried,
            rename_changes: Fact::if_known(kind.rename_changes()),
            reads: match kind {
                Kind::Tmpfs => Reads::NeverWait,
                _ if local => Reads::Tell,
                _ => Reads::MayWait,
            },
            ordered: false,
            reflinks: Fact::if_known(matches!(kind, Kind::Btrfs | Kind::Xfs)),
            counts_blocks: Fact::Untried,
            compresses: kind.compresses(),
            reserves: if kind.compresses() { Fact::No } else { Fact::Untried },
        }
    }

    /// True if a name may be missing for a moment although its object exists: because a file
    /// becomes a directory in two steps, or because it is being replaced. Then a writer that makes
    /// a name takes its lock, and so does a reader that does not find one.
    pub const fn names_may_vanish(&self) -> bool {
        !self.exchange.is_yes() || self.stale_names
    }

    /// Returns the first required property that the volume is known to lack. Properties that were
    /// not tried do not count: where nothing can be written, nothing can be lost.
    pub fn lacking(&self, needs: Needs) -> Option<Lack> {
        let asked = |lack: &Lack| match lack {
            Lack::Case | Lack::Forms => needs.names,
            Lack::Flushes => needs.flushes,
            Lack::Attributes => needs.attributes,
            lack => lack.is_refused(),
        };
        self.lacks().find(asked)
    }

    /// Returns everything that the volume is known to lack, required properties first.
    pub fn lacks(self) -> impl Iterator<Item = Lack> {
        Lack::ALL.into_iter().filter(move |lack| self.is_lacking(*lack))
    }

    fn is_lacking(&self, lack: Lack) -> bool {
        match lack {
            Lack::Case => self.names == Names::NoCase,
            Lack::Forms => self.names == Names::Normalized,
            Lack::Exclusive => self.exclusive.is_no(),
            Lack::Naming => self.nameless == Nameless::ForEver,
            Lack::Links => self.links.is_no(),
            Lack::Replacing => self.replaces.is_no(),
            Lack::Locks => self.locks == Locks::NoOne,
            Lack::Flushes => self.flushes.is_no(),
            Lack::Attributes => self.attributes.is_no(),
            Lack::Nameless => self.nameless == Nameless::No,
            Lack::Exchange => self.exchange.is_no(),
            Lack::StaleNames => self.stale_names,
            Lack::LocksElsewhere => self.locks == Locks::Unknown,
            Lack::OneMachine => !self.kind.is_local(),
            Lack::Inodes => !self.inodes_last,
            Lack::Modes => self.modes.is_no(),
            Lack::FineTimes => self.fine_times.is_no(),
            Lack::Reflinks => self.reflinks.is_no(),
            Lack::Reserving => self.reserves.is_no() && !self.compresses,
            Lack::Room => self.counts_blocks.is_no(),
        }
    }
}

/// Returns which processes locks exclude, as far as the kind and the mount options show that.
fn locks_of(kind: Kind, mounted: Option<&Mounted>) -> Locks {
    let has = |option| mounted.is_some_and(|mounted| mounted.has(option));
    match kind {
        Kind::Nfs if mounted.is_none() => Locks::Unknown,
        Kind::Nfs if ["nolock", "local_lock=flock", "local_lock=all"].into_iter().any(has) => Locks::Machine,
        Kind::Lustre if has("localflock") => Locks::Machine,
        Kind::Lustre if has("flock") => Locks::Machines,
        Kind::Smb if has("nobrl") => Locks::Machine,
        Kind::Smb if mounted.is_none() => Locks::Unknown,
        Kind::Ocfs2 | Kind::Gfs2 if has("localflocks") => Locks::Machine,
        Kind::Nfs | Kind::Smb | Kind::Cephfs | Kind::Gpfs | Kind::Gfs2 | Kind::Ocfs2 => Locks::Machines,
        Kind::Overlay => Locks::Machine,
        kind if kind.is_local() => Locks::Machine,
        _ => Locks::Unknown,
    }
}

fn changes_of(kind: Kind) -> Changes {
    if !kind.is_local() {
        Changes::Remote
    } else if kind.is_multigrain() && kernel_times_differ() {
        Changes::Each
    } else {
        Changes::Ticks
    }
}

/// True if each change of a file gives it another time than the one that was read before the change
/// (multigrain timestamps, Linux 6.13).
fn kernel_times_differ() -> bool {
    times_differ(rustix::system::uname().release().to_bytes())
}

fn times_differ(release: &[u8]) -> bool {
    let text = String::from_utf8_lossy(release);
    let mut numbers =
        text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Needs = Needs { names: true, flushes: true, attributes: true };

    #[test]
    fn kernels_with_multigrain_times() {
        for (release, expected) in
            [("6.12.9", false), ("6.13.0-rc1", true), ("7.0", true), ("5.15.0-100-generic", false)]
        {
            assert_eq!(times_differ(release.as_bytes()), expected, "{release}");
        }
    }

    /// Each required property that is missing is named, and those that were not tried are not.
    #[test]
    fn what_is_required_is_named_once_it_is_known_to_be_missing() {
        let untried = Volume::unknown();
        assert_eq!(untried.lacking(ALL), None);
        let lacking = [
            (Volume { names: Names::NoCase, ..untried }, Lack::Case),
            (Volume { names: Names::Normalized, ..untried }, Lack::Forms),
            (Volume { exclusive: Fact::No, ..untried }, Lack::Exclusive),
            (Volume { nameless: Nameless::ForEver, ..untried }, Lack::Naming),
            (Volume { links: Fact::No, ..untried }, Lack::Links),
            (Volume { replaces: Fact::No, ..untried }, Lack::Replacing),
            (Volume { locks: Locks::NoOne, ..untried }, Lack::Locks),
            (Volume { flushes: Fact::No, ..untried }, Lack::Flushes),
            (Volume { attributes: Fact::No, ..untried }, Lack::Attributes),
        ];
        let required = Lack::ALL.into_iter().filter(|lack| lack.is_refused());
        assert_eq!(required.count(), lacking.len());
        for (volume, lack) in lacking {
            assert_eq!(volume.lacking(ALL), Some(lack));
            assert_eq!(volume.lacks().next(), Some(lack));
        }
        let needs = Needs { names: false, flushes: false, attributes: false };
        for (volume, lack) in lacking {
            let spared = [Lack::Case, Lack::Forms, Lack::Flushes, Lack::Attributes].contains(&lack);
            assert_eq!(volume.lacking(needs).is_none(), spared, "{lack:?}");
        }
    }

    #[test]
    fn names_vanish_unless_both_reasons_are_known_to_be_absent() {
        let vanish = |exchange, stale_names| {
            Volume { exchange, stale_names, ..Volume::of_kind(Kind::Xfs) }.names_may_vanish()
        };
        assert!(!vanish(Fact::Yes, false));
        assert!(vanish(Fact::No, false) && vanish(Fact::Untried, false) && vanish(Fact::Yes, true));
    }

    #[test]
    fn whom_locks_exclude() {
        let proc = tempfile::tempdir().unwrap();
        std::fs::create_dir(proc.path().join("self")).unwrap();
        let of = |kind, driver: &str, options: &str| {
            let line = format!("20 1 0:44 / /mnt rw shared:1 - {driver} server:/export {options}\n");
            std::fs::write(proc.path().join("self/mountinfo"), line).unwrap();
            let mounted = Mounted::read(proc.path(), rustix::fs::makedev(0, 44)).unwrap();
            assert_eq!(mounted.driver, driver);
            locks_of(kind, Some(&mounted))
        };
        assert_eq!(of(Kind::Nfs, "nfs4", "rw,vers=4.2,local_lock=none"), Locks::Machines);
        assert_eq!(of(Kind::Nfs, "nfs", "rw,vers=3,nolock,local_lock=none"), Locks::Machine);
        assert_eq!(of(Kind::Nfs, "nfs", "rw,vers=3,local_lock=all"), Locks::Machine);
        assert_eq!(of(Kind::Lustre, "lustre", "rw,flock"), Locks::Machines);
        assert_eq!(of(Kind::Lustre, "lustre", "rw,localflock"), Locks::Machine);
        assert_eq!(of(Kind::Lustre, "lustre", "rw"), Locks::Unknown);
        assert_eq!(of(Kind::Fuse, "fuse.sshfs", "rw,user_id=0"), Locks::Unknown);
        assert_eq!(locks_of(Kind::Nfs, None), Locks::Unknown);
        assert_eq!(locks_of(Kind::Xfs, None), Locks::Machine);
    }
}
