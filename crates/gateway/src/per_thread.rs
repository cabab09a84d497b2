//! Values that all threads write to without slowing each other down.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The largest number of copies. If there are more processors, some share a copy.
const COPIES_MAX: usize = 16;

/// A few copies of a value. Each thread has one, which it shares with few others. If all threads
/// wrote to one value, it would move between the processors' caches with each request.
#[derive(Debug)]
pub struct PerThread<T> {
    copies: Vec<Apart<T>>,
}

/// A copy on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

impl<T> PerThread<T> {
    /// Makes one copy per processor, at most [`COPIES_MAX`].
    pub fn new(mut make: impl FnMut() -> T) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { copies: (0..processors.min(COPIES_MAX)).map(|_| Apart(make())).collect() }
    }

    /// Returns this thread's copy.
    pub fn mine(&self) -> &T {
        &self.copies[number_of_this_thread() % self.copies.len()].0
    }

    /// Returns all copies.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.copies.iter().map(|copy| &copy.0)
    }
}

/// Returns the number of this thread. Threads are numbered in the order of their first calls.
fn number_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = Cell::new(NEXT.fetch_add(1, Relaxed));
    }
    NUMBER.get()
}
