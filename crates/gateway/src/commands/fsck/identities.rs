//! The check of the documents of identities. The storage does not know what they say.

use std::path::Path;

use backend_posix::TreeDocuments;
use backend_posix::tools::{Problem, ProblemKind, ProblemState};
use iam::DocumentName;
use iam::model::AccountDocument;
use serde::de::IgnoredAny;

/// The directory of the documents, in DIR.
const PLACE: &str = ".slipway/iam";

/// Returns what is wrong with the documents of identities in a tree. Nothing is written.
pub(super) fn problems(dir: &Path) -> Vec<Problem> {
    // A tree that cannot be opened is told by the check of the rest.
    let Ok(documents) = TreeDocuments::open_to_read(dir) else { return Vec::new() };
    let place = dir.join(PLACE);
    let problem = |path, explanation| Problem {
        kind: ProblemKind::IdentitiesDamaged,
        path,
        explanation,
        state: ProblemState::Manual,
    };
    let listed = match documents.list() {
        Ok(listed) => listed,
        Err(error) => return vec![problem(place, format!("gateways know no user but root: {error}"))],
    };
    let faults = listed.into_iter().filter_map(|(name, _)| {
        let why = fault(&documents, &name)?;
        Some(problem(place.join(format!("{name}.json")), why))
    });
    faults.collect()
}

fn fault(documents: &TreeDocuments, name: &str) -> Option<String> {
    let bytes = match documents.read(name) {
        Ok(Some((bytes, _))) => bytes,
        // It went away meanwhile.
        Ok(None) => return None,
        Err(error) => return Some(error.to_string()),
    };
    let Some(account) = DocumentName::new(name).ok().and_then(|name| name.account()) else {
        let read = serde_json::from_slice::<IgnoredAny>(&bytes);
        return read.err().map(|error| format!("it is no JSON: {error}"));
    };
    match AccountDocument::read(&bytes) {
        Ok(document) if document.account == account => None,
        Ok(document) => Some(format!("it is the document of the account {}", document.account)),
        Err(why) => Some(format!("the account is closed: {why}")),
    }
}
