//! Reports what the file system of a directory can do.

use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode};

use super::inspect::{Inspection, Kind, Standing};
use crate::error::Io;
use crate::fs::file_info;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::aside::aside_of_nothing;
use crate::layout::keymap::{OWN_DIRECTORY, join};
use crate::layout::scattered::scattered_name;
use crate::layout::staged::STAGING;
use crate::volume::description::{Changes, Fact, Locks, Nameless, Names, Reads, Volume};
use crate::volume::mounts::Mounted;
use crate::volume::trials;

/// The abilities of a file system, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeReport {
    /// The kind of the file system.
    pub kind: &'static str,
    /// The driver's name in the mount table, if the device is there.
    pub driver: Option<String>,
    /// True if the file system was tried; otherwise only what follows from its kind is known.
    pub tried: bool,
    /// Its abilities: names, with values in words.
    pub facts: Vec<(&'static str, &'static str)>,
    /// The abilities that it lacks.
    pub lacks: Vec<VolumeLack>,
}

/// Something that a file system lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeLack {
    /// Its name.
    pub name: &'static str,
    /// True if a directory on such a file system is not served, unless an option says so.
    pub is_refused: bool,
    /// The consequence, as a sentence.
    pub sentence: &'static str,
}

/// Reports on the file system of an inspected root, or of an inspected bucket that is on another
/// file system than the root; with a trial, of any directory. What is not known yet is then tried
/// in a new directory there, which is removed. The error is a sentence.
pub fn volume_of(inspection: &Inspection, with_trial: bool) -> Result<Option<VolumeReport>, String> {
    let says = |e: &dyn std::fmt::Display| format!("{}: {e}", inspection.path.display());
    if inspection.kind != Kind::Directory || !(with_trial || is_shown(inspection).map_err(|e| says(&e))?) {
        return Ok(None);
    }
    let directory =
        rustix::fs::openat(CWD, &inspection.path, DIRECTORY, Mode::empty()).map_err(|e| says(&e))?;
    let device = file_info::of(&directory).map_err(|e| says(&e))?.device;
    let known = Volume::on(device, &directory).map_err(|e| says(&e))?;
    let tried = if with_trial {
        try_at(&directory, inspection, known)
            .map_err(|e| says(&format_args!("what its file system can do cannot be tried there: {e}")))?
    } else {
        None
    };
    let driver = Mounted::of(device).map(|mounted| mounted.driver);
    Ok(Some(report(tried.unwrap_or(known), tried.is_some(), driver)))
}

fn is_shown(inspection: &Inspection) -> Io<bool> {
    match (&inspection.place, inspection.standing) {
        (None, Standing::Directory { .. }) => Ok(true),
        (Some((root, _)), Standing::Bucket) => {
            let device = |path: &Path| file_info::of_path(path).map(|info| info.device);
            Ok(device(root)? != device(&inspection.path)?)
        }
        _ => Ok(false),
    }
}

/// Tries a file system in this directory; `None` if nothing can be written there.
fn try_at(directory: &OwnedFd, inspection: &Inspection, known: Volume) -> Io<Option<Volume>> {
    if inspection.place.is_none() {
        return trials::run(directory, &aside_of_nothing(), known);
    }
    // What a kill leaves there the sweep removes.
    match resolve::plain(directory, &join(OWN_DIRECTORY, STAGING), DIRECTORY) {
        Ok(staging) => trials::run(&staging, &crate::base::unique::name(), known),
        Err(_) => trials::run(directory, &scattered_name(), known),
    }
}

fn report(volume: Volume, tried: bool, driver: Option<String>) -> VolumeReport {
    let lack = |lack: crate::volume::lack::Lack| VolumeLack {
        name: lack.name(),
        is_refused: lack.is_refused(),
        sentence: lack.sentence(),
    };
    let lacks = volume.lacks().map(lack).collect();
    VolumeReport { kind: volume.kind.name(), driver, tried, facts: facts(&volume), lacks }
}

const UNTRIED: &str = "not tried";

const fn yes(fact: Fact) -> &'static str {
    match fact {
        Fact::Yes => "yes",
        Fact::No => "no",
        Fact::Untried => UNTRIED,
    }
}

const fn yes_if(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn facts(volume: &Volume) -> Vec<(&'static str, &'static str)> {
    let names = match volume.names {
        Names::Bytes => "differ if their bytes do",
        Names::NoCase => "do not differ by case",
        Names::Normalized => "do not differ by Unicode form",
        Names::Untried => UNTRIED,
    };
    let locks = match volume.locks {
        Locks::NoOne => "do not hold",
        Locks::Machine => "hold on this machine",
        Locks::Machines => "hold on all machines",
        Locks::Unknown => "hold on this mount",
    };
    let nameless = match volume.nameless {
        Nameless::Yes => "yes",
        Nameless::No => "no",
        Nameless::ForEver => "cannot be given a name",
        Nameless::Untried => UNTRIED,
    };
    let changes = match volume.changes {
        Changes::Each => "tell each change",
        Changes::Ticks => "by ticks of some milliseconds",
        Changes::Remote => "may come from another machine's clock",
    };
    let reads = match volume.reads {
        Reads::NeverWait => "yes, no read waits",
        Reads::Tell => "yes",
        Reads::MayWait => "no",
    };
    vec![
        ("names", names),
        ("hard links", yes(volume.links)),
        ("exclusive creation", yes(volume.exclusive)),
        ("replacing", yes(volume.replaces)),
        ("flushes of directories", yes(volume.flushes)),
        ("locks", locks),
        ("locks need writing", yes(volume.locks_need_writing)),
        ("nameless files", nameless),
        ("rename to a free name", yes(volume.no_replace)),
        ("exchange of names", yes(volume.exchange)),
        ("steady names", yes_if(!volume.stale_names)),
        ("file removed while open", if volume.lingers { "leaves another name" } else { "disappears" }),
        ("attributes", yes(volume.attributes)),
        ("modes", yes(volume.modes)),
        ("times of creation", yes(volume.births)),
        ("lasting inodes", yes_if(volume.inodes_last)),
        ("change times", changes),
        ("fractions of seconds", yes(volume.fine_times)),
        ("renames show in times", yes(volume.rename_changes)),
        ("non-blocking reads", reads),
        ("order of flushes", if volume.ordered { "kept" } else { "not known" }),
        ("shared blocks", yes(volume.reflinks)),
        ("reserving", yes(volume.reserves)),
        ("compresses", yes_if(volume.compresses)),
        ("reports free space", yes(volume.counts_blocks)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::inspect::inspect;
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn the_root_is_described_and_what_is_in_it_is_not() {
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        let root = scene.path().parent().unwrap().to_owned();
        let names = |path: &Path| {
            let mut names: Vec<_> =
                std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let of = |path: &Path, with_trial| {
            let found = inspect(path, None).unwrap().remove(0);
            volume_of(&found, with_trial).unwrap()
        };
        let (before, inside) = (names(&root), names(&scene.path()));
        let known = of(&root, false).unwrap();
        assert!(!known.tried && known.facts.contains(&("names", UNTRIED)));
        assert_eq!(of(&scene.path(), false), None, "the bucket is on the same file system");
        assert_eq!(of(&scene.path().join("a"), true), None);
        for path in [&root, &scene.path()] {
            let tried = of(path, true).unwrap();
            // What counts only of local file systems is tried only there.
            let known = |fact: &(&str, &str)| fact.1 != UNTRIED || fact.0 == "renames show in times";
            assert!(tried.tried && tried.facts.iter().all(known), "{tried:?}");
            assert!(tried.lacks.iter().all(|lack| !lack.is_refused), "{tried:?}");
        }
        assert_eq!((names(&root), names(&scene.path())), (before, inside));
    }
}
