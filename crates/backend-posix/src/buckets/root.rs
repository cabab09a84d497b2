//! Trials of the root's file system, in a directory of the server's own.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use kernel_calls::acting::{Identity, acting};
use rustix::fs::{Access, AtFlags, Mode};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::aside::Aside;
use crate::base::options::Metadata;
use crate::base::unique;
use crate::error::Io;
use crate::fs::resolve;
use crate::tree::store::{OpenError, Store};
use crate::volume::description::{Locks, Needs, Volume};
use crate::volume::lack::Lack;
use crate::volume::mounts::Mounted;
use crate::volume::trials;

/// Tries what the root's file system can do. Fails if it lacks something required.
pub(crate) fn try_root(store: Store, root: &Path) -> Result<Store, OpenError> {
    let volume = try_volume(&store).map_err(|errno| OpenError::no_trial(root, errno))?;
    // That a root has attributes was tried before.
    if let Some(lack) = volume.lacking(Needs { attributes: false, ..store.needs() }) {
        return Err(OpenError::lacking(root, lack));
    }
    if volume.locks == Locks::Unknown {
        tracing::info!(
            dir = ?root,
            "the file system of the served directory lacks something: {}",
            Lack::LocksElsewhere.sentence()
        );
    }
    for what in Mounted::of(store.device).map_or_else(Vec::new, |mounted| mounted.weakened()) {
        tracing::warn!(dir = ?root, "an option of the NFS mount with the served directory weakens what S3 promises: {what}");
    }
    Ok(store.with_volume(volume))
}

/// The uid and gid with which impersonation is tried: those of the user `nobody`.
const NOBODY: u32 = 65_534;

/// The supplementary group, and the gid of a member, with which it is tried whether groups count.
const TRIAL_GROUP: u32 = 1;
const TRIAL_GID: u32 = 2;

/// Fails if the file calls of requests cannot be made with the requesters' identities in this tree.
pub(crate) fn try_impersonation(store: &Store, root: &Path) -> Result<(), OpenError> {
    let tried = match store.metadata() {
        Metadata::Sidecar => {
            Err("it does not go with --metadata sidecar: a record beside a file would need the rights of several \
                 users"
                .to_owned())
        }
        Metadata::Xattr if store.options.allow_same_names => {
            Err("it does not go with --allow-same-names".to_owned())
        }
        Metadata::Xattr => try_as_nobody(store).unwrap_or_else(|errno| {
            Err(format!("it cannot be tried in the directory that is served: {errno}"))
        }),
    };
    tried.map_err(|why| OpenError::no_impersonation(root, why))
}

/// Tries impersonation with a directory that is closed to others: whether the kernel refuses
/// another user access to it, and says so in answer to `access`; and whether a directory can be
/// given to another user.
fn try_as_nobody(store: &Store) -> Io<Result<(), String>> {
    let aside = Aside::of_nothing(store)?;
    let name = unique::name();
    let trial = || {
        rustix::fs::mkdirat(&aside.fd, &name, Mode::RWXU)?;
        let nobody = Identity { uid: NOBODY, gid: NOBODY, groups: &[] };
        let asked =
            acting(nobody, || rustix::fs::accessat(&aside.fd, &name, Access::EXEC_OK, AtFlags::EACCESS));
        let ids = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        let given =
            rustix::fs::chownat(&aside.fd, &name, Some(ids.0), Some(ids.1), AtFlags::SYMLINK_NOFOLLOW);
        let owner = rustix::fs::statat(&aside.fd, &name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid;
        Ok(match (asked, given) {
            (Err(error), _) => Err(format!("the process cannot act as another user: {error}")),
            (Ok(Err(Errno::ACCESS)), Ok(())) if owner == NOBODY => Ok(()),
            (Ok(Err(Errno::ACCESS)), _) => Err(
                "directories cannot be given to other users here (a network file system with root_squash?)"
                    .to_owned(),
            ),
            (Ok(_), _) => Err("the kernel does not refuse a closed directory to another user".to_owned()),
        })
    };
    let mut outcome = trial();
    let _ = rustix::fs::unlinkat(&aside.fd, &name, AtFlags::REMOVEDIR);
    if matches!(outcome, Ok(Ok(()))) {
        outcome = Ok(try_groups(&aside.fd));
    }
    aside.remove();
    outcome
}

/// Tries whether a user is let into a directory by a supplementary group, and only as long as the
/// user is in that group. Fails if the file system keeps the groups of an earlier call. Where this
/// cannot be tried, as in a user namespace without [`TRIAL_GROUP`], nothing is said.
fn try_groups(directory: &OwnedFd) -> Result<(), String> {
    let name = unique::name();
    let may_enter = |fd: &OwnedFd, groups: &[u32]| -> io::Result<bool> {
        let who = Identity { uid: NOBODY, gid: TRIAL_GID, groups };
        acting(who, || rustix::fs::accessat(fd, ".", Access::EXEC_OK, AtFlags::EACCESS))
            .map(|asked| asked.is_ok())
    };
    let trial = || -> io::Result<[bool; 2]> {
        rustix::fs::mkdirat(directory, &name, Mode::RWXU)?;
        let fd = resolve::place_here(directory, name.as_bytes())?;
        let group = Some(Gid::from_raw(TRIAL_GROUP));
        rustix::fs::chownat(directory, &name, None, group, AtFlags::SYMLINK_NOFOLLOW)?;
        rustix::fs::chmodat(directory, &name, Mode::RWXU | Mode::XGRP, AtFlags::empty())?;
        Ok([may_enter(&fd, &[TRIAL_GROUP])?, may_enter(&fd, &[])?])
    };
    let entered = trial();
    let _ = rustix::fs::unlinkat(directory, &name, AtFlags::REMOVEDIR);
    match entered {
        Ok([_, true]) => {
            Err("the file system still lets a user in who has left a group (MooseFS keeps the groups of \
                              users for 300 s; with -o mfsgroupscacheto=0 only their own gid counts)"
                .to_owned())
        }
        Ok([false, false]) => {
            tracing::warn!(
                "--impersonate: the file system does not take the supplementary groups of users from the gateway: a \
                 user has the rights of its uid and gid, and of the groups that the file server itself knows"
            );
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Tries the properties of the root's volume that are not known. If nothing can be written there,
/// returns the properties that are known already.
fn try_volume(store: &Store) -> Io<Volume> {
    // Should this process be killed, the sweep removes it.
    let tried = Aside::of_nothing(store).map_or_else(trials::unless_unwritable, |aside| {
        let tried = trials::run(&aside.fd, &unique::name(), store.volume);
        aside.remove();
        tried
    })?;
    Ok(tried.unwrap_or(store.volume))
}
