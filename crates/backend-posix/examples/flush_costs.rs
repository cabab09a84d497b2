//! Measures the cost of having small files on disk before they are acknowledged: several threads
//! write files of 4 KiB in several ways. Prints files a second, and microseconds of CPU a file.
//!
//! `cargo run --release -p backend-posix --example flush_costs DIRECTORY [SECONDS]`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement, run by hand")]

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, XattrFlags};

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Plain,
    Unnamed,
    Ordered,
}

struct Place {
    path: PathBuf,
    directory: File,
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
    let file =
        File::from(rustix::fs::openat(&place.directory, ".", flags, Mode::from_raw_mode(0o666)).unwrap());
    rustix::io::pwrite(&file, &bytes, 0).unwrap();
    rustix::fs::fsetxattr(&file, "user.slipway", &[1; 42], XattrFlags::empty()).unwrap();
    if way == Way::Ordered {
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // SAFETY: no memory is handed over.
        assert_eq!(unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) }, 0);
    } else {
        rustix::fs::fsync(&file).unwrap();
    }
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    rustix::fs::linkat(CWD, path, &place.directory, &name, AtFlags::SYMLINK_FOLLOW).unwrap();
    rustix::fs::fsync(&place.directory).unwrap();
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn measure(root: &Path, way: Way, threads: usize, time: Duration) -> (f64, f64) {
    let path = root.join(format!("flush-costs-{}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    let directory = File::open(&path).unwrap();
    let place = Place { path, directory, count: AtomicU64::new(0) };
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
    let (elapsed, used) = (begun.elapsed(), cpu().saturating_sub(cpu_begun));
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
        ("O_TMPFILE, write, record, write out, link, fsync directory; 64 threads", Way::Ordered, 64),
        ("the same, 16 threads", Way::Ordered, 16),
    ];
    for _ in 0..2 {
        for (title, way, threads) in ways {
            let (rate, cpu) = measure(&root, way, threads, Duration::from_secs_f64(seconds));
            println!("{rate:8.0} files/s {cpu:6.0} us  {title}");
        }
    }
}
