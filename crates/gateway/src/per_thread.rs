//! What threads write to without being in each other's way.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// More processors than this share copies.
const COPIES_MAX: usize = 16;

/// A few copies of a thing. Each thread has one, which it shares with few others: what all threads
/// write to would travel between the processors' caches with each request.
#[derive(Debug)]
pub struct PerThread<T> {
    copies: Vec<Apart<T>>,
}

/// On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

impl<T> PerThread<T> {
    /// As many as there are processors, within bounds.
    pub fn new(mut make: impl FnMut() -> T) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { copies: (0..processors.min(COPIES_MAX)).map(|_| Apart(make())).collect() }
    }

    /// That of this thread.
    pub fn mine(&self) -> &T {
        &self.copies[number_of_this_thread() % self.copies.len()].0
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.copies.iter().map(|copy| &copy.0)
    }
}

/// Threads are numbered as they come.
fn number_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = Cell::new(NEXT.fetch_add(1, Relaxed));
    }
    NUMBER.get()
}
