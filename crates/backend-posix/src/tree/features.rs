//! Sets features of a tree (docs/FORMAT.md): from then on, programs that do not know these features
//! do not open it.
//!
//! The file with the names of the features is first written under another name. It gets its own
//! name once the number of the format is in the tree. So the tree can be opened after a crash at
//! any step, and whoever next needs the feature completes the change. Programs that are already
//! running do not notice it.

use std::collections::BTreeSet;

use backend::{BackendError, Result};

use super::format::{self, FEATURES_FILE, FILE, FORMAT_OF_FEATURES, PENDING_FILE, Said};
use super::store::Store;
use crate::base::step::step;
use crate::error::Op;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::OWN_DIRECTORY;

const OPERATION: &str = "note a feature of the directory";
/// The mode of files that any tool may read.
const MODE: u32 = 0o644;

/// Sets features of a tree that has a `.slipway`; they are on disk when it returns. The caller
/// holds a lock that excludes all others who set features of the tree.
pub(crate) fn set(store: &Store, wanted: &[&str]) -> Result<()> {
    let said = Said::read(&store.root).op(OPERATION)?;
    let (number, features) = said.checked().map_err(|(_, error)| unusable(error.to_string()))?;
    if said.is_complete() && wanted.iter().all(|feature| features.iter().any(|known| known == feature)) {
        return Ok(());
    }
    let own = resolve::plain(&store.root, OWN_DIRECTORY, DIRECTORY).op(OPERATION)?;
    store.note_format(&own)?;
    step("the first builds are stopped").op(OPERATION)?;
    let features: BTreeSet<&str> =
        features.iter().map(String::as_str).chain(wanted.iter().copied()).collect();
    let lines: String = features.iter().flat_map(|feature| [feature, "\n"]).collect();
    store.place_in_own(&own, PENDING_FILE, MODE, &lines, true)?;
    step("a feature is to be noted").op(OPERATION)?;
    if number != FORMAT_OF_FEATURES {
        let noted = said.noted();
        let text = with_number(noted.unwrap_or_default())
            .ok_or_else(|| unusable(format!("{FILE} is not as the server writes it")))?;
        store.place_in_own(&own, FILE, MODE, &text, noted.is_some())?;
        step("the format has its number").op(OPERATION)?;
    }
    let placed = rustix::fs::renameat(&own, PENDING_FILE, &own, FEATURES_FILE);
    placed.and_then(|()| rustix::fs::fsync(&own)).op(OPERATION)?;
    step("a feature is noted").op(OPERATION)
}

fn unusable(why: String) -> BackendError {
    BackendError::Io { operation: OPERATION, source: std::io::Error::other(why) }
}

/// Returns the contents of [`FILE`] with the number of the format that has features, and everything
/// else unchanged. `None` if the contents are not understood.
fn with_number(text: &str) -> Option<String> {
    let number = format!("format = {FORMAT_OF_FEATURES}\n");
    let is_number = |line: &str| line.split_once('=').is_some_and(|(key, _)| key.trim() == "format");
    let changed: String = match text {
        "" => number,
        text => {
            text.split_inclusive('\n').map(|line| if is_number(line) { &*number } else { line }).collect()
        }
    };
    (format::number(&changed) == Ok(FORMAT_OF_FEATURES)).then_some(changed)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;
    use crate::testing::Scene;
    use crate::tree::format::DOCUMENTS;

    #[test]
    fn only_the_number_changes() {
        let text = "# The options\nformat = 1\nregion = \"format = 1\"\nnew = 'x'\n";
        assert_eq!(with_number(text).unwrap(), text.replacen("format = 1", "format = 2", 1));
        assert_eq!(with_number("").unwrap(), "format = 2\n");
        assert_eq!(with_number("format=1").unwrap(), "format = 2\n");
        for text in ["no toml", "region = 'x'\n", "'format' = 1\n", "format = 1\nformat = 1\n"] {
            assert_eq!(with_number(text), None, "{text}");
        }
    }

    fn own(scene: &Scene) -> std::path::PathBuf {
        let own = scene.path().with_file_name(OWN_DIRECTORY);
        let _ = fs::create_dir(&own);
        own
    }

    fn is_noted(own: &Path, word: &str) -> bool {
        fs::read_to_string(own.join("metadata")).unwrap() == format!("{word} format-2\n")
    }

    /// Each build that does not know the feature is stopped by one of these files.
    #[test]
    fn a_feature_is_in_all_files_that_stop_older_builds() {
        let scene = Scene::new();
        let own = own(&scene);
        fs::write(own.join(FILE), "format = 1\nregion = \"r\"\n").unwrap();
        set(&scene.store, &[DOCUMENTS]).unwrap();
        let check = || {
            assert_eq!(fs::read_to_string(own.join(FILE)).unwrap(), "format = 2\nregion = \"r\"\n");
            assert_eq!(fs::read_to_string(own.join(FEATURES_FILE)).unwrap(), "bucket-documents\n");
            assert!(is_noted(&own, if scene.has_sidecars() { "sidecar" } else { "xattr" }));
            assert!(!own.join(PENDING_FILE).exists());
            format::check_at(&scene.store.root).unwrap().unwrap();
        };
        check();
        for file in [FILE, FEATURES_FILE] {
            assert_eq!(fs::metadata(own.join(file)).unwrap().permissions().mode() & 0o444, 0o444, "{file}");
        }
        // A second time nothing is written.
        let before = fs::metadata(own.join(FEATURES_FILE)).unwrap().modified().unwrap();
        set(&scene.store, &[DOCUMENTS]).unwrap();
        assert_eq!(fs::metadata(own.join(FEATURES_FILE)).unwrap().modified().unwrap(), before);
        check();
    }

    /// A change of features that a crash interrupted is completed.
    #[test]
    fn a_feature_that_was_to_be_noted_is() {
        let scene = Scene::new();
        let own = own(&scene);
        fs::write(own.join(PENDING_FILE), "bucket-documents\n").unwrap();
        fs::write(own.join(FILE), "format = 2\n").unwrap();
        set(&scene.store, &[DOCUMENTS]).unwrap();
        assert_eq!(fs::read_to_string(own.join(FEATURES_FILE)).unwrap(), "bucket-documents\n");
        assert!(!own.join(PENDING_FILE).exists());
    }

    #[test]
    fn a_tree_that_is_not_understood_gets_no_feature() {
        for (file, text) in [(FILE, "no toml"), (FEATURES_FILE, "time-travel\n")] {
            let scene = Scene::new();
            let own = own(&scene);
            fs::write(own.join(file), text).unwrap();
            assert!(matches!(set(&scene.store, &[DOCUMENTS]), Err(BackendError::Io { .. })), "{file}");
            assert_eq!(fs::read_to_string(own.join(file)).unwrap(), text);
        }
    }
}
