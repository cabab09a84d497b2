//! The account that owns a tree's buckets and objects.

use std::path::Path;

use iam::{Account, AccountId};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::Deserialize;

use crate::state_dir::{self, Access};

/// The name of the file with the account, in the state directory.
pub const FILE: &str = "account.toml";
/// The mode of the account's file. Others may read it: the account is not a secret, and their tools
/// may need it.
const MODE: u32 = 0o644;

#[derive(Deserialize)]
struct AccountFile {
    account_id: String,
}

/// Returns the account of the tree, which is in `state_dir/account.toml`. If this file does not
/// exist, it is created with `given`, or with random digits. Fails if the file names another
/// account than `given`: clients of this gateway would see another owner than those of other
/// gateways. If the file does not exist and cannot be written (a read-only tree), the account is
/// for this run only.
///
/// Without a `state_dir` nothing is stored, and the account is for this run only.
pub fn find(given: Option<&AccountId>, state_dir: Option<&Path>, access: Access) -> Result<Account, String> {
    let id = match (state_dir, given) {
        (Some(state_dir), given) => kept(given, state_dir, access)?,
        (None, Some(given)) => given.clone(),
        (None, None) => random()?,
    };
    Ok(Account::new(id))
}

/// True if the state directory at the path `own` below `above` names an account, which means that
/// gateways have served the directory that contains it.
pub fn is_kept(above: &Path, own: &str) -> bool {
    kept_in(above, own).is_some()
}

/// Returns the account that the state directory at the path `own` below `above` names; `None` if it
/// names none.
pub fn kept_in(above: &Path, own: &str) -> Option<AccountId> {
    state_dir::read_below(above, own, FILE).ok().flatten().and_then(|text| parse(&text).ok())
}

fn kept(given: Option<&AccountId>, state_dir: &Path, access: Access) -> Result<AccountId, String> {
    // Whether it is as made here is found out by making something.
    let may_try = || access == Access::Keep && state_dir::is_as_made_here(state_dir);
    if !state_dir::is_trusted(state_dir) && !may_try() {
        return Err(state_dir::distrust(state_dir));
    }
    if let Some(kept) = read(state_dir)? {
        return agreed(given, kept, state_dir);
    }
    let made = given.map_or_else(random, |given| Ok(given.clone()))?;
    let text = format!(
        "# The account that owns this directory's buckets and objects, made at the first start of slipway.\n\
         # Answers show an id made from it; clients may expect it (x-amz-expected-bucket-owner).\n\
         account_id = \"{made}\"\n"
    );
    let created = state_dir::create(state_dir, access, FILE, text.as_bytes(), MODE);
    // Another gateway may have been faster, with other digits.
    match (read(state_dir)?, created) {
        (Some(kept), _) => agreed(given, kept, state_dir),
        (None, Ok(_)) => Err(format!(
            "{}: the file was removed right after it was created; start again",
            state_dir.join(FILE).display()
        )),
        (None, Err(error)) => {
            let file = state_dir.join(FILE);
            if given.is_some() {
                tracing::info!(
                    ?file,
                    %error,
                    account_id = %made,
                    "the account id cannot be stored in this file: give the same --account-id at each start"
                );
            } else {
                tracing::warn!(
                    ?file,
                    %error,
                    account_id = %made,
                    "the account id cannot be stored in this file: unless --account-id is given, each start generates \
                     another id, and clients see another owner of buckets and objects after each restart"
                );
            }
            Ok(made)
        }
    }
}

fn agreed(given: Option<&AccountId>, kept: AccountId, state_dir: &Path) -> Result<AccountId, String> {
    match given {
        Some(given) if *given != kept => Err(format!(
            "{}: the directory belongs to account {kept}, not {given}: leave out --account-id. Another id can be \
             written into this file while no gateway of the directory runs, and only as long as the account has no \
             users, groups, roles and policies: these, and the encryption of their keys, are of {kept} for good",
            state_dir.join(FILE).display()
        )),
        _ => Ok(kept),
    }
}

fn read(state_dir: &Path) -> Result<Option<AccountId>, String> {
    let parsed = state_dir::read(state_dir, FILE)?.map(|text| parse(&text)).transpose();
    parsed.map_err(|error| format!("{}: {error}", state_dir.join(FILE).display()))
}

fn parse(text: &str) -> Result<AccountId, String> {
    let file =
        toml::from_str(text).map_err(|_| "expected a line account_id = \"…\" with 12 digits".to_owned());
    file.and_then(|file: AccountFile| AccountId::new(&file.account_id).map_err(|e| e.to_string()))
}

fn random() -> Result<AccountId, String> {
    // From the kernel: it is no secret, and seeding a generator would cost each start many times
    // more.
    let mut bits = [0u8; 8];
    let read = getrandom(&mut bits, GetRandomFlags::empty());
    read.ok().filter(|length| *length == bits.len()).ok_or("the kernel gives no random numbers")?;
    Ok(AccountId::from_random(u64::from_be_bytes(bits)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn id(text: &str) -> AccountId {
        AccountId::new(text).unwrap()
    }

    #[test]
    fn made_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join(".slipway");
        let made = find(None, Some(&state), Access::Keep).unwrap();
        assert_eq!(find(None, Some(&state), Access::Keep), Ok(made.clone()));
        assert_eq!(find(Some(made.id()), Some(&state), Access::Keep), Ok(made));
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "nothing is left of making it");
    }

    #[test]
    fn nothing_is_made_for_readers() {
        let dir = tempfile::tempdir().unwrap();
        let (state, given) = (dir.path().join(".slipway"), id("012345678901"));
        let read = |given| find(given, Some(&state), Access::Read);
        assert_eq!(read(Some(&given)).unwrap().id(), &given);
        assert_ne!(read(None), read(None));
        assert!(!state.exists());
        let made = find(None, Some(&state), Access::Keep).unwrap();
        assert_eq!(read(None), Ok(made));
    }

    #[test]
    fn what_is_given_is_kept_and_another_refused() {
        let dir = tempfile::tempdir().unwrap();
        let given = id("012345678901");
        assert_eq!(find(Some(&given), Some(dir.path()), Access::Keep).unwrap().id(), &given);
        assert_eq!(find(None, Some(dir.path()), Access::Keep).unwrap().id(), &given);
        let error = find(Some(&id("999999999999")), Some(dir.path()), Access::Keep).unwrap_err();
        assert!(error.contains("belongs to account 012345678901, not 999999999999"), "{error}");
    }

    #[test]
    fn a_file_that_does_not_say_it_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        for text in
            ["", "account_id = \"12\"", "account_id = 123456789012", "account_id = \"1234567890", "\u{0}"]
        {
            fs::write(&file, text).unwrap();
            let error = find(None, Some(dir.path()), Access::Keep).unwrap_err();
            assert!(error.contains("account.toml: ") && error.contains("12 d"), "{text}: {error}");
        }
        fs::write(&file, b"\xff").unwrap();
        assert!(find(None, Some(dir.path()), Access::Keep).is_err());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(find(None, Some(dir.path()), Access::Keep).unwrap_err().contains("not a regular file"));
    }

    #[test]
    fn what_is_too_long_is_not_cut() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("account_id = \"012345678901\"\n#{}", "x".repeat(64 * 1024));
        fs::write(dir.path().join(FILE), text).unwrap();
        assert!(find(None, Some(dir.path()), Access::Keep).unwrap_err().contains("longer than 65536 bytes"));
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join(FILE)).unwrap();
        assert!(find(None, Some(dir.path()), Access::Keep).unwrap_err().contains("not a regular file"));
    }

    #[test]
    fn of_gateways_that_start_at_once_one_wins() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join(".slipway");
        let found: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| find(None, Some(&state), Access::Keep).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|account| *account == found[0]), "{found:?}");
    }
}
