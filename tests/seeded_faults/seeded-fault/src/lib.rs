//! Tells the faults in a copy of the workspace which of them is on, and `run.py` which were
//! reached.
//!
//! Both are in a file that all processes of a copy map. Its name is compiled in, so that it reaches
//! a server whatever its environment is.

use std::ffi::{CString, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// As in `suites.py`.
const BYTES: usize = 4096;

static CONTROL: OnceLock<Option<Control>> = OnceLock::new();

struct Control {
    /// The number of the fault that is on, and for each fault whether it was reached.
    bytes: &'static [AtomicU8],
    may_note: bool,
}

/// True if this fault is on.
pub fn on(fault: usize) -> bool {
    let Some(control) = CONTROL.get_or_init(open) else { return false };
    let reached = &control.bytes[fault];
    if control.may_note && reached.load(Ordering::Relaxed) == 0 {
        reached.store(1, Ordering::Relaxed);
    }
    usize::from(control.bytes[0].load(Ordering::Relaxed)) == fault
}

/// Maps the file; only for reading where it may not be written to, as in a virtual machine.
fn open() -> Option<Control> {
    let path = CString::new(env!("SEEDED_FAULT_CONTROL")).ok()?;
    let map = |flags: c_int, protection: c_int| {
        // SAFETY: the path ends with a zero, and the descriptor is this function's own.
        let file = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
        if file < 0 {
            return None;
        }
        // SAFETY: as above; a new mapping overlays nothing.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, protection, libc::MAP_SHARED, file, 0) };
        // SAFETY: as above.
        unsafe { libc::close(file) };
        (at != libc::MAP_FAILED).then_some(at)
    };
    let written = map(libc::O_RDWR, libc::PROT_READ | libc::PROT_WRITE);
    let at = written.or_else(|| map(libc::O_RDONLY, libc::PROT_READ))?;
    // SAFETY: the mapping has so many bytes and stays.
    let bytes = unsafe { std::slice::from_raw_parts(at.cast::<AtomicU8>(), BYTES) };
    Some(Control { bytes, may_note: written.is_some() })
}
