//! The room on the file systems that a tree is on: DIR's own, and those that are mounted as
//! buckets.
//!
//! A file system that hangs never answers, and the thread that asked it is lost until it does. So
//! there is one look at a time, whoever asks, and who waits for it too long goes away.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use backend::VolumeStatistics;
use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;
use s3_types::BucketName;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::blocking;
use crate::error::Io;
use crate::limits::VOLUMES_WAIT_MAX;
use crate::presence::mount_points;
use crate::resolve::{self, DIRECTORY};
use crate::store::Store;

/// DIR's own.
const OWN: &str = ".";

/// The turn to look at the volumes.
#[derive(Debug)]
pub(crate) struct Turn {
    free: Arc<Semaphore>,
    /// The volume that is being asked; empty if none is.
    asked: Mutex<String>,
}

/// What a volume said.
pub(crate) struct Answer {
    name: String,
    room: Io<VolumeStatistics>,
}

impl Turn {
    pub fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(1)), asked: Mutex::default() }
    }

    fn ask(&self, name: &str) {
        name.clone_into(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Why there is no answer, for the operator.
    fn why(&self) -> String {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_empty() {
            return "the storage does not answer".to_owned();
        }
        format!("{}: the storage does not answer", shown(&asked))
    }
}

/// What each volume says; why not, if one does not answer in time.
pub(crate) async fn look(store: &Arc<Store>) -> Result<Vec<Answer>, String> {
    let free = Arc::clone(&store.volumes.free);
    let looked = async {
        let turn = free.acquire_owned().await;
        let store = Arc::clone(store);
        let look = move || {
            // It is the thread's, not that of who waits for it and may go away.
            let _turn = turn;
            Ok(all(&store))
        };
        blocking::run(None, look).await
    };
    match timeout(VOLUMES_WAIT_MAX, looked).await {
        Ok(looked) => looked.map_err(|error| error.to_string()),
        Err(_) => Err(store.volumes.why()),
    }
}

/// What each of them has. Those that don't tell are left out.
pub(crate) fn statistics(answers: Vec<Answer>) -> Vec<VolumeStatistics> {
    answers.into_iter().filter_map(|answer| answer.room.ok()).collect()
}

/// Whether each of them answers, and has the room that the options want; the reason if not.
pub(crate) fn ready(store: &Store, answers: &[Answer]) -> Result<(), String> {
    let wanted = store.options.ready_free_bytes;
    for Answer { name, room } in answers {
        let name = shown(name);
        match room {
            // One that tells no size tells nothing of its room either.
            Ok(room) if room.bytes > 0 && room.bytes_free < wanted => {
                return Err(format!("{name}: {} bytes are free, and {wanted} are wanted", room.bytes_free));
            }
            Ok(_) => {}
            Err(errno) => return Err(format!("{name}: {errno}")),
        }
    }
    Ok(())
}

fn shown(name: &str) -> &str {
    if name == OWN { "DIR" } else { name }
}

fn all(store: &Store) -> Vec<Answer> {
    let mounted = mounted_in(store);
    let names = [OWN].into_iter().chain(mounted.iter().map(String::as_str));
    let answers = names.filter_map(|name| {
        store.volumes.ask(name);
        let room = of(store, name);
        let answers = name == OWN || !is_none_of_ours(&room);
        answers.then(|| Answer { name: name.to_owned(), room })
    });
    let answers = answers.collect();
    store.volumes.ask("");
    answers
}

/// True if what is mounted at a bucket's name is no bucket that this server could serve: what it may
/// not enter (FUSE of any user is closed to all others), a file, or what has been unmounted by now.
fn is_none_of_ours(room: &Io<VolumeStatistics>) -> bool {
    matches!(room, Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// The names of buckets that something is mounted at.
fn mounted_in(store: &Store) -> Vec<String> {
    let points = mount_points();
    let inside = |point: &PathBuf| {
        let name = point.file_name()?.to_str()?;
        let bucket = point.parent() == Some(store.presence.place()) && BucketName::new(name).is_ok();
        bucket.then(|| name.to_owned())
    };
    let mut names: Vec<_> = points.iter().filter_map(inside).collect();
    names.sort();
    // Something may be mounted over something else.
    names.dedup();
    names
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

    /// As where a file system has stopped: the one thread that asks it never returns.
    #[tokio::test]
    async fn who_asks_while_a_volume_hangs_takes_no_thread() {
        let store = Arc::new(Scene::new().store);
        let hung = Arc::clone(&store.volumes.free).try_acquire_owned().unwrap();
        store.volumes.ask("hung");
        let asking: Vec<_> = (0..300)
            .map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { look(&store).await.err() })
            })
            .collect();
        for asked in asking {
            assert_eq!(asked.await.unwrap().as_deref(), Some("hung: the storage does not answer"));
        }
        drop(hung);
        let answers = look(&store).await.unwrap_or_default();
        assert_eq!(ready(&store, &answers), Ok(()));
        assert_eq!(statistics(answers).len(), 1);
        assert_eq!(store.volumes.why(), "the storage does not answer");
    }
}
