//! The identity that file calls are made with: that of the gateway, or that of the requester
//! (decision 0044).

use std::sync::Arc;

use backend::{BackendError, Context, Result};
use kernel_calls::acting::{Identity, acting, is_acting};
use rustix::fd::AsFd;
use rustix::fs::{Access, AtFlags};
use s3_types::UnixIdentity;

use super::options::Options;

/// The identity that the file calls of some work are made with.
#[derive(Debug, Clone)]
pub(crate) enum Who {
    /// The gateway's own user.
    Gateway,
    /// The requester.
    Requester(Arc<UnixIdentity>),
}

impl Who {
    /// Returns the identity that the file calls for a requester are made with. Fails with
    /// [`BackendError::NoPosixIdentity`] if it is to be the requester's own, and the requester has
    /// no POSIX identity.
    pub fn of(options: &Options, cx: &Context) -> Result<Self> {
        if !options.impersonate {
            return Ok(Self::Gateway);
        }
        cx.unix.clone().map(Self::Requester).ok_or(BackendError::NoPosixIdentity)
    }

    /// Runs some work with this identity. A call that the kernel refuses to the requester fails
    /// with [`BackendError::DeniedToUser`]. Fails with [`BackendError::CannotAct`] if the thread
    /// cannot take the identity on.
    pub fn call<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let Self::Requester(requester) = self else { return work() };
        let UnixIdentity { account, groups } = &**requester;
        let who = Identity { uid: account.uid(), gid: account.gid(), groups };
        let cannot = |source| BackendError::CannotAct { uid: who.uid, gid: who.gid, source };
        acting(who, work).map_err(cannot)?.map_err(refused)
    }
}

/// Returns the error for a call that the kernel refused. A refusal to the gateway itself is one
/// that its operator has to see; a refusal to a user is not.
fn refused(error: BackendError) -> BackendError {
    match error {
        BackendError::Denied { operation } => BackendError::DeniedToUser { operation, path: None },
        BackendError::Copy { side, error } => BackendError::Copy { side, error: Box::new(refused(*error)) },
        error => error,
    }
}

/// True if the user whose identity the thread has may access an open directory in this way. It is
/// always true for the gateway.
pub(crate) fn may(directory: impl AsFd, access: Access) -> bool {
    may_at(directory, ".", access)
}

/// Does the same as [`may`] for a name in an open directory.
pub(crate) fn may_at(directory: impl AsFd, name: &str, access: Access) -> bool {
    !is_acting() || rustix::fs::accessat(directory, name, access, AtFlags::EACCESS).is_ok()
}
