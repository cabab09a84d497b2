//! Checks at the start with `--impersonate` and `--chown` (decision 0044).

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use kernel_calls::acting::Identity;
use kernel_calls::privileges;
use s3_types::UnixName;

use crate::config::ServeOptions;
use crate::credentials::Root;
use crate::unix_identities::{Refused, Rules, UnixIdentities};

const fn rules(options: &ServeOptions) -> Rules {
    let ServeOptions { impersonate, posix_names, uid_min, .. } = *options;
    Rules { impersonate, posix_names, minimum_uid: uid_min }
}

/// Returns the POSIX identities of requesters by the options; `None` if they make no difference.
pub fn unix_identities(options: &ServeOptions) -> Option<UnixIdentities> {
    let matters = options.impersonate || options.chown;
    matters.then(|| UnixIdentities::new(rules(options), options.anonymous_user.clone()))
}

/// Gives up the privileges that the process does not need to act as other users. Fails if it cannot
/// act as others. It has to be called before the process has other threads.
pub fn become_able_to_act(options: &ServeOptions) -> Result<(), String> {
    let failed = |why: String| format!("--impersonate: the server cannot act as other users: {why}");
    let trial = Identity { uid: options.uid_min, gid: options.uid_min, groups: &[] };
    privileges::can_act(trial).map_err(|lack| failed(lack.to_string()))?;
    privileges::keep_what_acting_needs()
        .map_err(|error| failed(format!("it cannot give up the capabilities that it does not need: {error}")))
}

/// Warns if users have no search permission (x) for DIR, below which all files are.
pub fn warn_of_closed_tree(options: &ServeOptions) {
    if !options.impersonate {
        return;
    }
    let dir = Path::new(&options.dir);
    // A tree that cannot be looked at ends the start elsewhere.
    let Ok(found) = std::fs::metadata(dir) else { return };
    let mode = found.permissions().mode() & 0o7777;
    if mode & 0o001 == 0 {
        let dir = dir.display();
        tracing::warn!(
            "--impersonate: {dir} has the mode {mode:04o}, and users whom it gives no right to search it (x) can \
             read and write no object, whatever policies allow: chmod o+x {dir}"
        );
    }
}

/// Refuses POSIX identities of root and of anonymous requesters that are not allowed; warns if root
/// has none.
pub async fn check_ids(options: &ServeOptions, root: &Root) -> Result<(), String> {
    check_anonymous(options).await?;
    check_root(options, root)
}

fn check_root(options: &ServeOptions, root: &Root) -> Result<(), String> {
    if !options.impersonate {
        return Ok(());
    }
    let Some(account) = root.unix_account else {
        tracing::warn!(
            "--impersonate: no uid and gid are known for root (SLIPWAY_ROOT_UID and SLIPWAY_ROOT_GID, or uid and \
             gid in the credentials file), so that requests signed with root's keys can read and write no object"
        );
        return Ok(());
    };
    let refusal = rules(options).refusal(account);
    refusal.map_or(Ok(()), |why| {
        Err(format!("--impersonate: root cannot be {account} on the file system: {why}"))
    })
}

/// Refuses an identity with which each anonymous request would be refused. Of a name that the
/// system does not know there is a warning alone: a directory that has it may answer later.
async fn check_anonymous(options: &ServeOptions) -> Result<(), String> {
    let (Some(unix), Some(identities)) = (&options.anonymous_user, unix_identities(options)) else {
        return Ok(());
    };
    let unknown = |why: &str| {
        tracing::warn!(
            "--anonymous-user: all anonymous requests that access files are refused for now: {why}"
        );
        Ok(())
    };
    match identities.refusal(unix).await {
        Ok(None) => Ok(()),
        Ok(Some(Refused { why, is_unknown: true })) => unknown(&why),
        Ok(Some(Refused { why, .. })) => {
            let whose = match unix {
                UnixName::Ids(identity) => format!("{} cannot be used: ", identity.account),
                UnixName::Account(_) | UnixName::User(_) => String::new(),
            };
            Err(format!("--anonymous-user: {whose}{why}"))
        }
        Err(_) => unknown("the system's user database (NSS) does not answer"),
    }
}
