//! File calls as another user: the kernel decides about them by the ids and groups of that user.
//!
//! The kernel has separate ids for file calls (setfsuid(2), setfsgid(2)), and ids and groups for
//! each thread. [`acting`] changes those of the calling thread, and gives the ids back when its
//! work ends. While a thread of the superuser has another user's id for file calls, it has none of
//! the capabilities that concern files (capabilities(7)): the kernel takes and returns them.
//!
//! A new thread begins with the ids of the thread that made it. So [`begin_as_self`] is the first
//! call of each thread, except those that [`spawn_scoped`] makes.

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::marker::PhantomData;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::{io, process};

use crate::ids;

/// A user's ids and supplementary groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'g> {
    /// The user id.
    pub uid: u32,
    /// The group id, which new files get.
    pub gid: u32,
    /// The supplementary groups.
    pub groups: &'g [u32],
}

impl Identity<'_> {
    fn is_refused(&self) -> bool {
        let refused = |id| id == ids::SUPERUSER || id == ids::NONE;
        refused(self.uid) || refused(self.gid) || self.groups.iter().any(|group| refused(*group))
    }
}

/// The present ids of a thread's file calls, and those that they return to after its work.
struct Standing {
    /// The thread's own user and group.
    own: (u32, u32),
    /// The user and group that it acts as, also within [`as_self`].
    acting: Cell<Option<(u32, u32)>>,
    is_self: Cell<bool>,
    /// The groups that were set last. They stay when the work ends: what the superuser may do with
    /// files does not depend on groups.
    groups: RefCell<Option<Vec<u32>>>,
}

thread_local! {
    static STANDING: Standing = Standing {
        own: ids::own(),
        acting: Cell::new(None),
        is_self: Cell::new(false),
        groups: RefCell::new(None),
    };
}

/// Does some work whose file calls are those of a user.
///
/// Fails before the work begins: with `InvalidInput` if an id is 0 or 4294967295, or if the thread
/// acts as a user already; with `PermissionDenied` if the process is not the superuser, or the
/// kernel does not give it the ids, as those that its user namespace does not have. Ends the
/// process if the kernel does not give the own ids back.
pub fn acting<T>(who: Identity<'_>, work: impl FnOnce() -> T) -> io::Result<T> {
    let _guard = Acting::begin(who)?;
    Ok(work())
}

/// Does some work as the process's own user, within [`acting`] and outside of it.
pub fn as_self<T>(work: impl FnOnce() -> T) -> T {
    let _guard = AsSelf::begin();
    work()
}

/// The user that the thread acts as: `Some` within [`acting`], except within [`as_self`].
pub fn acting_user() -> Option<u32> {
    STANDING.with(|standing| standing.acting.get().filter(|_| !standing.is_self.get()).map(|(uid, _)| uid))
}

/// True within [`acting`], except within [`as_self`].
pub fn is_acting() -> bool {
    acting_user().is_some()
}

/// Gives the thread the own ids, whatever ids its maker had.
pub fn begin_as_self() {
    STANDING.with(|standing| hold(standing.own));
}

/// Returns the user and group of the thread's file calls, as the kernel has them.
pub fn ids_for_files() -> (u32, u32) {
    ids::for_files()
}

/// Makes a thread that acts as this one does, for its whole life.
pub fn spawn_scoped<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let (acting, is_self) = STANDING.with(|standing| (standing.acting.get(), standing.is_self.get()));
    builder.spawn_scoped(scope, move || {
        STANDING.with(|standing| {
            standing.acting.set(acting);
            standing.is_self.set(is_self);
            // It has them from its maker, also the groups.
            if ids::for_files() != acting.filter(|_| !is_self).unwrap_or(standing.own) {
                lost();
            }
        });
        work()
    })
}

/// The time in which a thread acts as a user. It must not go to another thread.
struct Acting(PhantomData<*const ()>);

impl Acting {
    fn begin(who: Identity<'_>) -> io::Result<Self> {
        let invalid = |message| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        if who.is_refused() {
            return invalid(
                "file calls are not made with the superuser's ids or the number that is not an id",
            );
        }
        STANDING.with(|standing| {
            if standing.acting.get().is_some() {
                return invalid("the thread acts as a user already");
            }
            // Another user's thread would keep what it may do with files.
            if standing.own.0 != ids::SUPERUSER {
                let message = "only the superuser can act as another user";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
            standing.take_groups(who.groups)?;
            standing.acting.set(Some((who.uid, who.gid)));
            let guard = Self(PhantomData);
            if ids::set_for_files(who.uid, who.gid) {
                return Ok(guard);
            }
            let message = format!("the kernel does not let the process act as {}:{}", who.uid, who.gid);
            Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
        })
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        STANDING.with(|standing| {
            hold(standing.own);
            standing.acting.set(None);
        });
    }
}

impl Standing {
    fn take_groups(&self, groups: &[u32]) -> io::Result<()> {
        let mut held = self.groups.borrow_mut();
        if held.as_deref() != Some(groups) {
            // Unknown if this fails.
            *held = None;
            ids::set_groups(groups)?;
            *held = Some(groups.to_vec());
        }
        Ok(())
    }
}

/// The time in which a thread that acts as a user is itself; `None` if it was itself before.
struct AsSelf(Option<(u32, u32)>, PhantomData<*const ()>);

impl AsSelf {
    fn begin() -> Self {
        STANDING.with(|standing| {
            let user = standing.acting.get().filter(|_| !standing.is_self.get());
            if user.is_some() {
                hold(standing.own);
                standing.is_self.set(true);
            }
            Self(user, PhantomData)
        })
    }
}

impl Drop for AsSelf {
    fn drop(&mut self) {
        if let Some(user) = self.0 {
            hold(user);
            STANDING.with(|standing| standing.is_self.set(false));
        }
    }
}

/// Gives the thread's file calls the ids, or ends the process: a thread whose ids are not known
/// must not go on.
fn hold(ids: (u32, u32)) {
    if !ids::set_for_files(ids.0, ids.1) && ids::for_files_by_proc().ok() != Some(ids) {
        lost();
    }
}

fn lost() -> ! {
    let message: &[u8] =
        b"the kernel does not give a thread back the ids of its file calls: the process ends\n";
    let _ = io::stderr().write_all(message);
    process::abort();
}

#[cfg(test)]
mod tests;
