//! Measures the cost of opening nothing but regular files (decision 0010): several ways to read a
//! small file with its record, in microseconds.
//!
//! `cargo run --release -p backend-posix --example open_costs DIRECTORY`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement, run by hand")]

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, XattrFlags};

const ROUNDS: u32 = 200_000;
const KEY: &str = "bucket/directory/key";
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const RECORD: &str = "user.slipway";

fn open(root: &OwnedFd, flags: OFlags) -> OwnedFd {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::CACHED
        | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(root, KEY, flags, Mode::empty(), resolve).unwrap()
}

fn record(file: &OwnedFd) {
    rustix::fs::fgetxattr(file, RECORD, &mut [0u8; 256]).unwrap();
}

fn record_at(path: &str) {
    rustix::fs::lgetxattr(path, RECORD, &mut [0u8; 256]).unwrap();
}

fn record_behind(file: &OwnedFd) {
    rustix::fs::getxattr(format!("/proc/self/fd/{}", file.as_raw_fd()), RECORD, &mut [0u8; 256]).unwrap();
}

fn read(file: &OwnedFd) {
    rustix::io::pread(file, &mut [0u8; 1024], 0).unwrap();
    rustix::fs::fstat(file).unwrap();
}

fn time(name: &str, mut run: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let begun = Instant::now();
        (0..ROUNDS / 5).for_each(|_| run());
        best = best.min(begun.elapsed().as_secs_f64() / f64::from(ROUNDS / 5) * 1e6);
    }
    println!("{best:6.2}  {name}");
}

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let top = tempfile::tempdir_in(directory).unwrap();
    std::fs::create_dir_all(top.path().join("bucket/directory")).unwrap();
    std::fs::write(top.path().join(KEY), [7; 1024]).unwrap();
    let root = rustix::fs::open(top.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    rustix::fs::fsetxattr(open(&root, READ), RECORD, &[7; 45], XattrFlags::empty()).unwrap();
    let path = format!("/proc/self/fd/{}/{KEY}", root.as_raw_fd());

    time("HEAD: open, fgetxattr, fstat, close", || {
        let file = open(&root, READ);
        record(&file);
        rustix::fs::fstat(&file).unwrap();
    });
    time("HEAD: open O_PATH, getxattr by /proc, fstat, close", || {
        let file = open(&root, PATH);
        record_behind(&file);
        rustix::fs::fstat(&file).unwrap();
    });
    time("GET: open, fgetxattr, pread, fstat, close", || {
        let file = open(&root, READ);
        record(&file);
        read(&file);
    });
    time("GET: statx, open, fgetxattr, pread, fstat, close", || {
        rustix::fs::statx(&root, KEY, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE).unwrap();
        let file = open(&root, READ);
        record(&file);
        read(&file);
    });
    time("GET: lgetxattr by /proc, open, pread, fstat, close", || {
        record_at(&path);
        read(&open(&root, READ));
    });
    time("GET: open O_PATH, getxattr by /proc, open by /proc, pread, fstat, close twice", || {
        let place = open(&root, PATH);
        record_behind(&place);
        let again = format!("/proc/self/fd/{}", place.as_raw_fd());
        read(&rustix::fs::openat(CWD, again, READ, Mode::empty()).unwrap());
    });
}
