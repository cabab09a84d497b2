//! What it costs to have small files on disk before they are acknowledged: ways for several threads to write files of 4 KiB, in files a
//! second and microseconds of CPU a file.
//!
//! `cargo run --release -p backend-posix --example flush_costs DIRECTORY [SECONDS]`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement, run by hand")]

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, AtFlags, CWD, Mode, OFlags, XattrFlags};

/// Flushes for all who ask while a flush is under way are one.
#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    done: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<(u64, Arc<File>)>,
    next: u64,
    /// All tickets below are flushed.
    flushed: u64,
    leading: bool,
}

impl Shared {
    fn flush(&self, file: &Arc<File>) {
        let mut queue = self.queue.lock().unwrap();
        let ticket = queue.next;
        queue.next += 1;
        queue.waiting.push((ticket, Arc::clone(file)));
        loop {
            if queue.flushed > ticket {
                return;
            }
            if queue.leading {
                queue = self.done.wait(queue).unwrap();
                continue;
            }
            queue.leading = true;
            let batch = std::mem::take(&mut queue.waiting);
            let end = queue.next;
            drop(queue);
            if batch.len() > 1 {
                for (_, file) in &batch {
                    // Begins to write, and waits for nothing.
                    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
                }
            }
            for (_, file) in &batch {
                rustix::fs::fsync(file).unwrap();
            }
            queue = self.queue.lock().unwrap();
            queue.flushed = end;
            queue.leading = false;
            self.done.notify_all();
        }
    }

    fn flush_directory(&self, directory: &File) {
        let mut queue = self.queue.lock().unwrap();
        let ticket = queue.next;
        queue.next += 1;
        loop {
            if queue.flushed > ticket {
                return;
            }
            if queue.leading {
                queue = self.done.wait(queue).unwrap();
                continue;
            }
            queue.leading = true;
            let end = queue.next;
            drop(queue);
            rustix::fs::fsync(directory).unwrap();
            queue = self.queue.lock().unwrap();
            queue.flushed = end;
            queue.leading = false;
            self.done.notify_all();
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Plain,
    Unnamed,
    SharedNames,
    SharedAll,
}

struct Place {
    path: PathBuf,
    directory: File,
    files: Shared,
    names: Shared,
    count: AtomicU64,
}

fn write(place: &Place, way: Way) {
    let name = place.count.fetch_add(1, Relaxed).to_string();
    let bytes = [7u8; 4096];
    if way == Way::Plain {
        let staged = place.path.join(format!("s{name}"));
        let file = OpenOptions::new().write(true).create_new(true).open(&staged).unwrap();
        rustix::io::pwrite(&file, &bytes, 0).unwrap();
        rustix::fs::fsync(&file).unwrap();
        std::fs::hard_link(&staged, place.path.join(&name)).unwrap();
        rustix::fs::fsync(&place.directory).unwrap();
        std::fs::remove_file(staged).unwrap();
        return;
    }
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&place.directory, ".", flags, Mode::from_raw_mode(0o666)).unwrap());
    rustix::io::pwrite(&file, &bytes, 0).unwrap();
    rustix::fs::fsetxattr(&file, "user.slipway", &[1; 42], XattrFlags::empty()).unwrap();
    let file = Arc::new(file);
    if way == Way::SharedAll { place.files.flush(&file) } else { rustix::fs::fsync(&file).unwrap() }
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    rustix::fs::linkat(CWD, path, &place.directory, &name, AtFlags::SYMLINK_FOLLOW).unwrap();
    match way {
        Way::SharedNames | Way::SharedAll => place.names.flush_directory(&place.directory),
        _ => rustix::fs::fsync(&place.directory).unwrap(),
    }
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn measure(root: &Path, way: Way, threads: usize, time: Duration) -> (f64, f64) {
    let path = root.join(format!("flush-costs-{}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    let directory = File::open(&path).unwrap();
    let place = Place { path, directory, files: Shared::default(), names: Shared::default(), count: AtomicU64::new(0) };
    let stop = AtomicBool::new(false);
    let (begun, cpu_begun) = (Instant::now(), cpu());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    write(&place, way);
                }
            });
        }
        thread::sleep(time);
        stop.store(true, Relaxed);
    });
    let (elapsed, used) = (begun.elapsed(), cpu() - cpu_begun);
    #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
    let files = place.count.load(Relaxed) as f64;
    std::fs::remove_dir_all(&place.path).unwrap();
    (files / elapsed.as_secs_f64(), used.as_secs_f64() * 1e6 / files)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let root = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let seconds = arguments.next().map_or(2.0, |text| text.parse().unwrap());
    let ways = [
        ("create, write, fsync, link, fsync directory; 16 threads", Way::Plain, 16),
        ("the same, 64 threads", Way::Plain, 64),
        ("O_TMPFILE, write, record, fsync, link, fsync directory; 64 threads", Way::Unnamed, 64),
        ("the directory's flush shared; 64 threads", Way::SharedNames, 64),
        ("both flushes shared; 64 threads", Way::SharedAll, 64),
        ("both flushes shared; 16 threads", Way::SharedAll, 16),
    ];
    for _ in 0..2 {
        for (title, way, threads) in ways {
            let (rate, cpu) = measure(&root, way, threads, Duration::from_secs_f64(seconds));
            println!("{rate:8.0} files/s {cpu:6.0} us  {title}");
        }
    }
}
