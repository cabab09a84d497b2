//! Upgrades a tree to the features of this version: from then on older versions no longer open it,
//! and the features may be used.
//!
//! A few files in `DIR/.slipway` are written (`tree/features.rs`); no bucket is looked at. A start
//! never upgrades a tree: gateways of older versions may be running, which do not look at the
//! format while they serve and can't be detected. Those of this version can ([`serving`]).

use std::path::Path;

use backend::BackendError;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::locate::{may_be_served, refuse_part_of_tree};
use super::opening;
use crate::base::options::Durability;
use crate::base::step::step;
use crate::error::{Io, Op};
use crate::fs::files::give_to_owner_of;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::OWN_DIRECTORY;
use crate::tree::features;
use crate::tree::format::{FEATURES, FORMAT_OF_FEATURES, Said};
use crate::tree::serving::{self, Holders};
use crate::tree::store::Store;

const OPERATION: &str = "upgrade the directory";

/// The format and the features of a tree, and what an upgrade adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgrade {
    /// The format before the upgrade.
    pub format: u32,
    /// The features before the upgrade.
    pub features: Vec<String>,
    /// The features that are added, each with what it allows.
    pub added: Vec<(&'static str, &'static str)>,
    /// True if an upgrade was begun, and has to be completed.
    pub is_begun: bool,
    /// A sentence about the gateways that serve the tree; only for a tree that was only looked at.
    pub served: Option<String>,
}

impl Upgrade {
    fn of(said: &Said) -> Result<Self, String> {
        let (format, features) = said.checked().map_err(|(file, error)| format!("{file}: {error}"))?;
        let added = FEATURES.into_iter().filter(|(name, _)| !features.iter().any(|known| known == name));
        let is_begun = format == FORMAT_OF_FEATURES && !said.is_complete();
        Ok(Self { format, added: added.collect(), features, is_begun, served: None })
    }

    /// True if an upgrade changes nothing.
    pub fn is_needless(&self) -> bool {
        self.added.is_empty() && !self.is_begun
    }
}

/// Upgrades the tree at `root`, if `upgrade` is set; only looks at it otherwise, and at who serves
/// it. Returns what was added, or would be. An upgrade fails with a sentence if someone serves the
/// tree, unless there is nothing to add.
pub fn upgrade(root: &Path, upgrade: bool) -> Result<Upgrade, String> {
    refuse_part_of_tree(root)?;
    let told = |why: String| format!("{}: {why}", root.display());
    if !may_be_served(root) {
        return Err(told("no gateway seems to have served this directory: is it the right one?".to_owned()));
    }
    // Nothing is tried, and nothing is written but what an upgrade writes.
    let store = opening::open(root, true, Durability::Full)?;
    let found = look(&store).map_err(told)?;
    if found.is_needless() {
        return Ok(found);
    }
    if !upgrade {
        let served = match serving::exclude(&store.root, false) {
            Ok(Holders::Some(lines)) => Some(is_served(&lines)),
            // Where there are no locks, a look needs none.
            Ok(Holders::None(_)) | Err(_) => None,
        };
        return Ok(Upgrade { served, ..found });
    }
    make_own(&store).map_err(|error| told(error.to_string()))?;
    let holders = serving::exclude(&store.root, true);
    let _lock = match holders.map_err(|errno| told(format!("{OWN_DIRECTORY}: {errno}")))? {
        Holders::None(lock) => lock,
        Holders::Some(lines) => {
            let cure = "stop all gateways of the directory, on all machines, and give the command again";
            return Err(told(format!("{}: {cure}", is_served(&lines))));
        }
    };
    // Another upgrade may have ended meanwhile.
    let found = look(&store).map_err(told)?;
    let names = FEATURES.map(|(name, _)| name);
    features::set(&store, &names).map_err(|error| told(error.to_string()))?;
    Ok(found)
}

/// Returns a sentence about the gateways and commands that work on the tree at `root`, if there are
/// any, or if that cannot be found out.
pub fn served_by(root: &Path) -> Option<String> {
    let holders =
        rustix::fs::open(root, DIRECTORY, Mode::empty()).and_then(|root| serving::exclude(root, false));
    match holders {
        Ok(Holders::None(_)) => None,
        Ok(Holders::Some(lines)) => Some(is_served(&lines)),
        Err(errno) => Some(format!("whether gateways serve this directory cannot be found out: {errno}")),
    }
}

fn look(store: &Store) -> Result<Upgrade, String> {
    let said = Said::read(&store.root).map_err(|errno| format!("{OWN_DIRECTORY}: {errno}"))?;
    Upgrade::of(&said)
}

/// Makes `.slipway`, which may be missing in a tree that only early builds have served.
fn make_own(store: &Store) -> Result<(), BackendError> {
    let make = || -> Io<()> {
        match rustix::fs::mkdirat(&store.root, OWN_DIRECTORY, Mode::RWXU) {
            Err(Errno::EXIST) => return Ok(()),
            made => made?,
        }
        let own = resolve::plain(&store.root, OWN_DIRECTORY, DIRECTORY)?;
        if store.hands_over {
            give_to_owner_of(&store.root, own)?;
        }
        step("there is a directory of the tree's own")?;
        rustix::fs::fsync(&store.root)
    };
    make().op(OPERATION)
}

fn is_served(lines: &[String]) -> String {
    match lines {
        [] => "a gateway with --read-only or a command (rehash, sweep, import, upgrade, fsck --repair) is working on \
               this directory"
            .to_owned(),
        [gateway] => format!("the gateway {gateway} is serving this directory"),
        gateways => format!("these gateways are serving this directory: {}", gateways.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::buckets::documents::crashes::{Tree, at_all_steps};
    use crate::testing::fixture;

    fn upgraded(tree: &Tree) -> Result<Upgrade, String> {
        upgrade(tree.root.path(), true)
    }

    fn files(tree: &Tree) -> Vec<String> {
        ["tree.toml", "format", "metadata", "format.pending"]
            .map(|name| fs::read_to_string(tree.root.path().join(".slipway").join(name)).unwrap_or_default())
            .to_vec()
    }

    fn word() -> &'static str {
        if fixture::sidecars() { "sidecar format-2\n" } else { "xattr format-2\n" }
    }

    #[test]
    fn a_tree_is_upgraded_once() {
        let tree = Tree::new();
        tree.create(&[]).unwrap();
        let own = tree.root.path().join(".slipway");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("tree.toml"), "format = 1\nregion = \"r\"\n").unwrap();
        let before = files(&tree);
        let looked = upgrade(tree.root.path(), false).unwrap();
        assert_eq!((looked.format, &*looked.features, looked.is_begun), (1, &[][..], false));
        assert_eq!(
            looked.added.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            FEATURES.map(|(name, _)| name)
        );
        assert_eq!(files(&tree), before, "a look writes nothing");
        assert!(!own.join("gateways").exists());
        assert_eq!(upgraded(&tree).unwrap(), looked);
        let after = ["format = 2\nregion = \"r\"\n", "bucket-documents\nobject-lock\nversions\n", word(), ""];
        assert_eq!(files(&tree), after);
        tree.load().unwrap();
        let again = upgraded(&tree).unwrap();
        assert!(
            again.is_needless()
                && again.format == 2
                && again.features == ["bucket-documents", "object-lock", "versions"]
        );
        assert_eq!(files(&tree), after);
        // Documents find the feature there.
        tree.change(&[(backend::DocumentKind::Policy, Some("policy"))]).unwrap();
        assert_eq!(files(&tree), after);
    }

    /// After an interruption at each step the tree can be opened, and the next upgrade completes
    /// it.
    #[test]
    fn an_upgrade_that_was_cut_off_is_completed() {
        let done = |tree: &Tree| {
            upgraded(tree)
                .map(drop)
                .map_err(|why| BackendError::Io { operation: OPERATION, source: std::io::Error::other(why) })
        };
        let check = |tree: &Tree, at: &str| {
            tree.load().unwrap_or_else(|error| panic!("{at}: {error}"));
            let next = upgrade(tree.root.path(), false).unwrap_or_else(|why| panic!("{at}: {why}"));
            assert_eq!(next.is_needless(), at.ends_with("a feature is noted"), "{at}: {next:?}");
            assert_eq!(next.is_begun, at.ends_with("the format has its number"), "{at}");
            upgraded(tree).unwrap_or_else(|why| panic!("{at}: {why}"));
            assert_eq!(
                files(tree),
                ["format = 2\n", "bucket-documents\nobject-lock\nversions\n", word(), ""],
                "{at}"
            );
            assert_eq!(tree.documents(), Some(backend::Documents::new()), "{at}");
        };
        let steps = at_all_steps(|tree| tree.create(&[]).unwrap(), done, check);
        let made = ["there is a directory of the tree's own"];
        let steps = steps.strip_prefix(if fixture::sidecars() { &[][..] } else { &made }).unwrap();
        let expected = [
            "the first builds are stopped",
            "a feature is to be noted",
            "the format has its number",
            "a feature is noted",
        ];
        assert_eq!(*steps, expected);
    }

    #[test]
    fn a_tree_that_is_served_is_not_upgraded() {
        let tree = Tree::new();
        tree.create(&[]).unwrap();
        fs::create_dir_all(tree.root.path().join(".slipway")).unwrap();
        let before = files(&tree);
        let gateway = serving::serve(tree.root.path(), Some("at a:1")).unwrap();
        let told = "the gateway at a:1 is serving this directory";
        let refused = upgraded(&tree).unwrap_err();
        assert!(refused.contains(&format!("{told}: stop all gateways")), "{refused}");
        let looked = upgrade(tree.root.path(), false).unwrap();
        assert_eq!((looked.served.as_deref(), looked.added.len()), (Some(told), FEATURES.len()));
        let second = serving::serve(tree.root.path(), Some("at b:2")).unwrap();
        assert!(upgraded(&tree).unwrap_err().contains("these gateways are serving this directory: at "));
        drop((gateway, second));
        let tool = Store::open_as_tool(tree.root.path(), fixture::options()).unwrap();
        assert!(upgraded(&tree).unwrap_err().contains("a command (rehash, "));
        assert_eq!(files(&tree), before);
        drop(tool);
        upgraded(&tree).unwrap();
    }

    #[test]
    fn what_is_not_a_tree_is_not_upgraded() {
        let other = tempfile::tempdir().unwrap();
        fs::create_dir(other.path().join("Pictures")).unwrap();
        let refused = upgrade(other.path(), true).unwrap_err();
        assert!(refused.ends_with("is it the right one?"), "{refused}");
        let tree = Tree::new();
        tree.create(&[]).unwrap();
        let refused = upgrade(&tree.root.path().join("bucket"), true).unwrap_err();
        assert!(refused.contains("this is the bucket \"bucket\" of the directory"), "{refused}");
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
    }
}
