//! The check of the documents of identities. The storage does not know what they say.

use std::collections::BTreeMap;
use std::path::Path;

use backend_posix::TreeDocuments;
use backend_posix::tools::{Problem, ProblemKind, ProblemState};
use iam::model::AccountDocument;
use iam::{AccountId, DocumentName, listed_accounts};
use serde::de::IgnoredAny;

use crate::account;
use crate::state_dir::STATE_DIR;

/// The directory of the documents, in DIR.
const PLACE: &str = ".slipway/iam";

/// Returns what is wrong with the documents of identities in a tree. Nothing is written.
pub(super) fn problems(dir: &Path) -> Vec<Problem> {
    // A tree that cannot be opened is told by the check of the rest.
    let Ok(documents) = TreeDocuments::open_to_read(dir) else { return Vec::new() };
    let place = dir.join(PLACE);
    let listed = match documents.list() {
        Ok(listed) => listed,
        Err(error) => return vec![problem(&place, format!("gateways know no user but root: {error}"))],
    };
    let mut problems = Vec::new();
    // The names of the accounts that have documents; `None` for one that cannot be read.
    let mut accounts = BTreeMap::new();
    for (name, _) in listed {
        let found = read(&documents, &name);
        if let Some(id) = DocumentName::new(&name).ok().and_then(|name| name.account()) {
            accounts.insert(id, found.as_ref().ok().and_then(Clone::clone));
        }
        if let Err(why) = found {
            problems.push(problem(&place.join(format!("{name}.json")), why));
        }
    }
    problems.extend(missing(&documents, &place, &accounts));
    problems.extend(of_other_account(dir, &accounts));
    problems
}

fn problem(path: &Path, explanation: String) -> Problem {
    Problem {
        kind: ProblemKind::IdentitiesDamaged,
        path: path.to_owned(),
        explanation,
        state: ProblemState::Manual,
    }
}

/// Reads a document. Returns the name of its account, if it is one of an account.
fn read(documents: &TreeDocuments, name: &str) -> Result<Option<Box<str>>, String> {
    let bytes = match documents.read(name) {
        Ok(Some((bytes, _))) => bytes,
        // It went away meanwhile.
        Ok(None) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let Ok(name) = DocumentName::new(name) else { return read_json(&bytes) };
    if name == DocumentName::of_accounts() {
        return listed_accounts(&bytes).map(|_| None);
    }
    let Some(account) = name.account() else { return read_json(&bytes) };
    match AccountDocument::read(&bytes) {
        Ok(document) if document.account == account => Ok(Some(document.name)),
        Ok(document) => Err(format!("it is the document of the account {}", document.account)),
        Err(why) => Err(format!("the account is closed: {why}")),
    }
}

fn read_json(bytes: &[u8]) -> Result<Option<Box<str>>, String> {
    let read = serde_json::from_slice::<IgnoredAny>(bytes);
    read.map(|_| None).map_err(|error| format!("it is no JSON: {error}"))
}

/// Returns the documents that are gone although their accounts were not deleted.
fn missing(
    documents: &TreeDocuments,
    place: &Path,
    accounts: &BTreeMap<AccountId, Option<Box<str>>>,
) -> Vec<Problem> {
    // What cannot be read is told already.
    let list = documents.read(DocumentName::of_accounts().as_str()).ok().flatten();
    let listed = list.and_then(|(bytes, _)| listed_accounts(&bytes).ok()).unwrap_or_default();
    let gone = listed.into_iter().filter(|id| !accounts.contains_key(id));
    let gone = gone.map(|id| {
        let why = format!(
            "the document is gone, and the account {id} was not deleted: it is closed, and its users can do nothing. \
             Restore the document from a backup; or, to give up all users, groups, roles and policies of the account, \
             take its id out of accounts.json"
        );
        problem(&place.join(format!("{}.json", DocumentName::of_account(&id))), why)
    });
    gone.collect()
}

/// Tells if the directory's account has no document, and the account of another directory has one:
/// the id of the account was changed, or its file is gone.
fn of_other_account(dir: &Path, accounts: &BTreeMap<AccountId, Option<Box<str>>>) -> Option<Problem> {
    let own = account::kept_in(dir, STATE_DIR);
    if own.as_ref().is_some_and(|own| accounts.contains_key(own)) {
        return None;
    }
    // An account that is made in a directory has a name.
    let is_nameless = |name: &Option<Box<str>>| name.as_ref().is_some_and(|name| name.is_empty());
    let (other, _) = accounts.iter().find(|(_, name)| is_nameless(name))?;
    let own = own.map_or_else(|| "is not known".to_owned(), |own| format!("is {own}"));
    let why = format!(
        "the account of the directory {own}, and the users that are stored are of the account {other}: no gateway \
         starts. Write account_id = \"{other}\" into this file"
    );
    Some(problem(&dir.join(STATE_DIR).join(account::FILE), why))
}
