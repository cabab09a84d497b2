//! Places between the steps of a change, at which tests simulate a crash or an error.

use rustix::io::Result;

/// Marks a place between two steps of a change, at which tests may interfere. Outside of tests it
/// does nothing.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "tests have it fail")]
pub(crate) const fn step(_: &str) -> Result<()> {
    Ok(())
}

/// Marks a place between two steps of a change, at which the test that runs on this thread may
/// interfere.
#[cfg(test)]
pub(crate) fn step(name: &'static str) -> Result<()> {
    // Taken out, since what it does may come by places itself.
    let Some(mut hook) = HOOK.take() else { return Ok(()) };
    let result = hook(name);
    HOOK.set(Some(hook));
    result
}

#[cfg(test)]
type Hook = Box<dyn FnMut(&'static str) -> Result<()>>;

#[cfg(test)]
thread_local! {
    static HOOK: std::cell::Cell<Option<Hook>> = const { std::cell::Cell::new(None) };
}

/// Calls `hook` at each of these places that `work` reaches. If the hook panics, `work` ends there
/// as in a crash: nothing is undone, and locks are released.
#[cfg(test)]
pub(crate) fn at_each_step<T>(
    hook: impl FnMut(&'static str) -> Result<()> + 'static,
    work: impl FnOnce() -> T,
) -> T {
    HOOK.set(Some(Box::new(hook)));
    let done = work();
    HOOK.set(None);
    done
}
