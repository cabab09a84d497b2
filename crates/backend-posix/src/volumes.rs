//! The space on a tree's file systems: DIR's own, and those that are mounted as buckets, which are
//! also tried at the start.
//!
//! A file system that hangs never answers, and the thread that asked it is blocked until it does.
//! So only one thread at a time asks each file system, and callers stop waiting after a time limit.
//! A file system that hangs does not keep others from being asked.

use std::collections::BTreeSet;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use backend::{BackendError, Statistics, VolumeStatistics};
use kernel_calls::acting::begin_as_self;
use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;
use s3_types::BucketName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::blocking;
use crate::error::{Io, Op as _, retrying};
use crate::fs::reading::has_only;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::is_of_file_system;
use crate::limits::{VOLUMES_THREADS_MAX, VOLUMES_WAIT_MAX};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;

/// The name of DIR's own volume.
const OWN: &str = ".";

/// The answer of a volume; `None` if it did not come in time.
type Answer = Option<Io<VolumeStatistics>>;

/// The volumes' answers, and the volumes that are being asked.
#[derive(Debug)]
pub(crate) struct Volumes {
    store: Arc<Store>,
    own: Shared<Answer>,
    /// The volumes of buckets, by name.
    others: Shared<Vec<(String, Answer)>>,
    /// The volumes that a thread is asking at the moment.
    asked: Mutex<BTreeSet<String>>,
    /// The permits for threads that ask buckets' volumes; DIR's volume is asked without one.
    threads: Arc<Semaphore>,
}

impl Volumes {
    /// Makes the volumes of a tree.
    pub fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            own: Shared::new(),
            others: Shared::new(),
            asked: Mutex::default(),
            threads: Arc::new(Semaphore::new(VOLUMES_THREADS_MAX)),
        }
    }

    fn asked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A query whose result all callers share that came before it began.
#[derive(Debug)]
struct Shared<T>(tokio::sync::Mutex<Option<(Instant, T)>>);

impl<T: Clone> Shared<T> {
    fn new() -> Self {
        Self(tokio::sync::Mutex::new(None))
    }

    async fn get(&self, look: impl Future<Output = T>) -> T {
        let wanted = Instant::now();
        let mut last = self.0.lock().await;
        match &*last {
            Some((begun, seen)) if *begun >= wanted => seen.clone(),
            _ => {
                let begun = Instant::now();
                let seen = look.await;
                *last = Some((begun, seen.clone()));
                seen
            }
        }
    }
}

/// A volume that a thread is asking for its space. The thread drops this when it returns.
struct Asked {
    volumes: Arc<Volumes>,
    name: String,
    _thread: Option<OwnedSemaphorePermit>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.volumes.asked().remove(&self.name);
    }
}

/// Checks that DIR's volume answers, and has the space that the options require; the error is the
/// reason. Buckets' own volumes don't matter, since other buckets can still be served.
pub(crate) async fn ready(volumes: &Arc<Volumes>) -> Result<(), String> {
    let wanted = volumes.store.options.ready_free_bytes;
    match own(volumes).await {
        None => Err("DIR: the storage does not answer".to_owned()),
        Some(Err(errno)) => Err(format!("DIR: {errno}")),
        // One that tells no size tells nothing of its room either.
        Some(Ok(room)) if room.bytes > 0 && room.bytes_free < wanted => Err(format!(
            "DIR: {} bytes are free, fewer than --ready-free demands ({wanted})",
            room.bytes_free
        )),
        Some(Ok(_)) => Ok(()),
    }
}

/// Adds the figures of each volume, and the names of those that don't answer.
pub(crate) async fn add_statistics(volumes: &Arc<Volumes>, statistics: &mut Statistics) {
    let (own, others) = tokio::join!(own(volumes), others(volumes));
    for (name, answer) in [(OWN.to_owned(), own)].into_iter().chain(others) {
        match answer {
            Some(Ok(room)) => statistics.volumes.push(room),
            Some(Err(errno)) if name != OWN && is_none_of_ours(errno) => {}
            _ => statistics.silent_volumes.push(name),
        }
    }
}

/// Tries the file systems that are mounted as buckets, so that a lack is reported at the start, and
/// not first to a client. One that does not answer in time is tried before the first write to it.
pub(crate) fn try_mounted(store: &Arc<Store>) {
    let names = store.presence.mounted_buckets();
    let threads = names.len().min(VOLUMES_THREADS_MAX);
    let (names, (done, all_done)) = (Arc::new(Mutex::new(names)), channel::<()>());
    for _ in 0..threads {
        let (store, names, done) = (Arc::clone(store), Arc::clone(&names), done.clone());
        let next = move || names.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let work = move || {
            begin_as_self();
            while let Some(name) = next() {
                try_bucket(&store, &name);
            }
            drop(done);
        };
        // Without a thread it is tried later.
        let _ = thread::Builder::new().name("volumes".to_owned()).spawn(work);
    }
    drop(done);
    if all_done.recv_timeout(VOLUMES_WAIT_MAX) == Err(RecvTimeoutError::Timeout) {
        tracing::warn!(
            "some file systems that are mounted as buckets did not answer at the start, so that it is not known whether \
             they support what the server needs: each is tested before the first write to it"
        );
    }
}

/// Tries the file system of a bucket if the server keeps something there already, or if the bucket
/// is new. If others keep files there, these may be meant only to be read, so that nothing is made
/// before the first write.
fn try_bucket(store: &Store, name: &str) {
    let Ok(name) = BucketName::new(name) else { return };
    let tried = retrying(|| {
        let bucket = store.bucket(&name)?;
        match bucket.own() {
            Ok(_) => {}
            Err(Errno::NOENT) if is_new(&bucket).attempt("read a bucket")? => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno).attempt("open a bucket's own directory"),
        }
        bucket.try_device()
    });
    match tried {
        // It was logged, with the sentence for the operator.
        Ok(()) | Err(BackendError::BucketUnsuitable(_)) => {}
        Err(error) => tracing::warn!(
            bucket = name.as_str(),
            %error,
            "the file system of a bucket could not be tested for what it supports: the test is repeated before the \
             first write to the bucket"
        ),
    }
}

/// True if a bucket contains nothing except what file systems keep for themselves.
fn is_new(bucket: &Bucket<'_>) -> Io<bool> {
    let directory = resolve::plain(&bucket.fd, "", DIRECTORY)?;
    has_only(directory, |name| name.to_str().is_ok_and(is_of_file_system))
}

async fn own(volumes: &Arc<Volumes>) -> Answer {
    let volumes = Arc::clone(volumes);
    // A task of its own: who asked may go away, and others wait for the same answer.
    let look = tokio::spawn(async move { volumes.own.get(ask(&volumes, OWN, None)).await });
    look.await.unwrap_or_default()
}

async fn others(volumes: &Arc<Volumes>) -> Vec<(String, Answer)> {
    let volumes = Arc::clone(volumes);
    let look = tokio::spawn(async move { volumes.others.get(look(&volumes)).await });
    look.await.unwrap_or_default()
}

/// Asks the volumes of all buckets at the same time.
async fn look(volumes: &Arc<Volumes>) -> Vec<(String, Answer)> {
    let of = Arc::clone(&volumes.store);
    let names = blocking::join(&mut blocking::spawn(move || Ok(of.presence.mounted_buckets()))).await;
    let asked = names.unwrap_or_default().into_iter().map(|name| {
        let volumes = Arc::clone(volumes);
        let answer = async move {
            let threads = Arc::clone(&volumes.threads);
            let turn = async {
                let thread = threads.acquire_owned().await.ok()?;
                ask(&volumes, &name, Some(thread)).await
            };
            let answer = timeout(VOLUMES_WAIT_MAX, turn).await.unwrap_or_default();
            (name, answer)
        };
        tokio::spawn(answer)
    });
    let mut answers = Vec::new();
    for answer in asked.collect::<Vec<_>>() {
        answers.extend(answer.await);
    }
    answers
}

/// Asks a volume on a thread of its own. If a thread that asked before has not returned, there is
/// no answer.
async fn ask(volumes: &Arc<Volumes>, name: &str, thread: Option<OwnedSemaphorePermit>) -> Answer {
    if !volumes.asked().insert(name.to_owned()) {
        return None;
    }
    let asked = Asked { volumes: Arc::clone(volumes), name: name.to_owned(), _thread: thread };
    let mut answer = blocking::spawn(move || Ok(of(&asked.volumes.store, &asked.name)));
    timeout(VOLUMES_WAIT_MAX, blocking::join(&mut answer)).await.ok()?.ok()
}

/// True if the thing that is mounted at a bucket's name can't be a bucket of this server: a mount
/// that it may not enter (another user's FUSE mount), a file, or something that was unmounted
/// again.
fn is_none_of_ours(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

fn of(store: &Store, name: &str) -> Io<VolumeStatistics> {
    let opened = resolve::plain(&store.root, name, DIRECTORY)?;
    let room = rustix::fs::fstatvfs(opened)?;
    Ok(VolumeStatistics {
        name: name.to_owned(),
        bytes: room.f_blocks.saturating_mul(room.f_frsize),
        bytes_free: room.f_bavail.saturating_mul(room.f_frsize),
        files: room.f_files,
        files_free: room.f_favail,
        read_only: room.f_flag.contains(StatVfsMountFlags::RDONLY),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    /// A volume on a file system that hangs occupies one thread, whose call never returns; later
    /// callers take no other.
    #[tokio::test]
    async fn who_asks_while_a_volume_hangs_takes_no_thread() {
        let volumes = Arc::new(Volumes::new(Arc::new(Scene::new().store)));
        volumes.asked().insert(OWN.to_owned());
        let asking: Vec<_> = (0..300)
            .map(|_| {
                let volumes = Arc::clone(&volumes);
                tokio::spawn(async move { ready(&volumes).await })
            })
            .collect();
        for asked in asking {
            assert_eq!(asked.await.unwrap(), Err("DIR: the storage does not answer".to_owned()));
        }
        let mut statistics = Statistics::default();
        add_statistics(&volumes, &mut statistics).await;
        assert_eq!((statistics.volumes.len(), statistics.silent_volumes), (0, vec![OWN.to_owned()]));
        volumes.asked().clear();
        assert_eq!(ready(&volumes).await, Ok(()));
        let mut statistics = Statistics::default();
        add_statistics(&volumes, &mut statistics).await;
        assert_eq!((statistics.volumes.len(), statistics.silent_volumes), (1, Vec::new()));
        assert!(volumes.asked().is_empty());
    }

    /// A bucket's volume that fails is reported, unless it cannot be a bucket of this server.
    #[tokio::test]
    async fn volumes_that_fail_are_silent_ones() {
        let volumes = Arc::new(Volumes::new(Arc::new(Scene::new().store)));
        let answers =
            [("broken", Some(Err(Errno::IO))), ("hangs", None), ("theirs", Some(Err(Errno::ACCESS)))];
        let answers = answers.map(|(name, answer)| (name.to_owned(), answer)).to_vec();
        // As a look that began later than all who ask here.
        let later = Instant::now() + std::time::Duration::from_hours(1);
        *volumes.others.0.lock().await = Some((later, answers));
        let mut statistics = Statistics::default();
        add_statistics(&volumes, &mut statistics).await;
        assert_eq!(statistics.volumes.len(), 1);
        assert_eq!(statistics.silent_volumes, ["broken", "hangs"]);
    }

    #[tokio::test]
    async fn who_comes_while_others_look_gets_a_look_that_began_later() {
        let shared = Shared::new();
        let looks = std::sync::atomic::AtomicUsize::new(0);
        let look = || async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        };
        let late = async {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            tokio::join!(shared.get(look()), shared.get(look()), shared.get(look()))
        };
        assert_eq!(tokio::join!(shared.get(look()), late), (0, (1, 1, 1)));
    }
}
