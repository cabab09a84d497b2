//! Makes file calls as another user: the kernel decides about them by the ids and groups of that
//! user.
//!
//! The kernel has separate ids for file calls (setfsuid(2), setfsgid(2)), and ids and groups for
//! each thread. [`acting`] changes those of the calling thread, and restores the ids when its work
//! ends. While a thread of the superuser has another user's id for file calls, it has none of the
//! capabilities that concern files (capabilities(7)): the kernel removes and restores them by
//! itself.
//!
//! A new thread begins with the ids of the thread that made it. So [`begin_as_self`] is the first
//! call of each thread, except for threads that [`spawn_scoped`] makes.

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
    /// The group id, which new files get as their group.
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

/// The ids that a thread's file calls have now, and those that they get back after the thread has
/// acted as a user.
struct Standing {
    /// The user id and group id of the process, which the thread has if it acts as nobody else.
    own: (u32, u32),
    /// The user id and group id that the thread acts as, also within [`as_self`].
    acting: Cell<Option<(u32, u32)>>,
    is_self: Cell<bool>,
    /// The supplementary groups that were set last. They stay after the work ends, since the
    /// superuser's rights on files do not depend on groups.
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

/// Calls `work`, and makes its file calls with the ids of the user `who`.
///
/// Fails without calling `work`: with `InvalidInput` if an id is 0 or 4294967295, or if the thread
/// acts as a user already; with `PermissionDenied` if the process is not the superuser, or if the
/// kernel refuses the ids, for example because the process's user namespace does not have them.
/// Ends the process if the kernel does not restore the ids after `work`.
pub fn acting<T>(who: Identity<'_>, work: impl FnOnce() -> T) -> io::Result<T> {
    let _guard = Acting::begin(who)?;
    Ok(work())
}

/// Calls `work`, and makes its file calls with the process's own ids, within [`acting`] and outside
/// of it.
pub fn as_self<T>(work: impl FnOnce() -> T) -> T {
    let _guard = AsSelf::begin();
    work()
}

/// Returns the id of the user that the thread acts as: `Some` within [`acting`], except within
/// [`as_self`].
pub fn acting_user() -> Option<u32> {
    STANDING.with(|standing| standing.acting.get().filter(|_| !standing.is_self.get()).map(|(uid, _)| uid))
}

/// True within [`acting`], except within [`as_self`].
pub fn is_acting() -> bool {
    acting_user().is_some()
}

/// Sets the ids of the thread's file calls to those of the process, whatever ids the thread had
/// that made this one.
pub fn begin_as_self() {
    STANDING.with(|standing| hold(standing.own));
}

/// Returns the user id and group id of the thread's file calls, as the kernel has them.
pub fn ids_for_files() -> (u32, u32) {
    ids::for_files()
}

/// Makes a thread that acts as the same user as the calling thread, for its whole life.
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

/// A guard: the thread acts as a user while it exists. It must not be sent to another thread.
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

/// A guard: the thread has the process's own ids while it exists. It holds the ids to restore;
/// `None` if the thread had its own ids before.
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

/// Sets the ids of the thread's file calls. Ends the process if that fails: a thread whose ids are
/// not known must not go on.
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
