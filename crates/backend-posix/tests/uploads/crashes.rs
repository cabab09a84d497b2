//! Each state in which a crash may leave an upload, made by hand; and what Complete, Abort and the sweep make of it.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use backend::{Backend, BackendError, CompletedPart, Context, WriteReceipt};

use crate::fixture;
use crate::scene::{MIB, PART, Scene, body};

/// The states of decision 0007, left by hand.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Crash {
    /// An assembly without its layout, and claims of the dead.
    Founding,
    Claims,
    /// Bytes copied to a slot in part.
    Copying,
    Journal,
    TornJournal,
    Linked,
    LinkedAndDeleted,
    Renamed,
    RenamedAndReplaced,
    /// By a power cut.
    JournalLost,
    Receipt,
    NoDescription,
}

const CRASHES: [Crash; 12] = [
    Crash::Founding,
    Crash::Claims,
    Crash::Copying,
    Crash::Journal,
    Crash::TornJournal,
    Crash::Linked,
    Crash::LinkedAndDeleted,
    Crash::Renamed,
    Crash::RenamedAndReplaced,
    Crash::JournalLost,
    Crash::Receipt,
    Crash::NoDescription,
];

/// Those that can be: with records in files there are no assemblies.
fn crashes() -> impl Iterator<Item = Crash> {
    let of_any =
        [Crash::Journal, Crash::TornJournal, Crash::JournalLost, Crash::Receipt, Crash::NoDescription];
    CRASHES.into_iter().filter(move |crash| !fixture::sidecars() || of_any.contains(crash))
}

struct Crashed {
    scene: Scene,
    parts: Vec<CompletedPart>,
    body: Vec<u8>,
    /// The answer that the interrupted Complete was about to give.
    receipt: Option<WriteReceipt>,
}

/// Completes the upload with all that belongs to it kept aside, and puts back what the crash left.
async fn crash(crash: Crash) -> Crashed {
    let scene = Scene::new().await;
    let (one, two) = (body(1, PART), body(2, PART));
    let upload = scene.upload();
    if crash == Crash::Founding {
        fs::write(upload.join("assembly1"), b"").unwrap();
    }
    if crash == Crash::Claims {
        scene.put(3, &body(3, PART)).await;
        for part in ["00001.1", "00002.1"] {
            fs::write(upload.join(part), b"").unwrap();
        }
        let assembly = fs::File::options().write(true).open(upload.join("assembly1")).unwrap();
        assembly.write_all_at(&body(9, PART + 99), 0).unwrap();
    }
    let mut parts = vec![scene.put(1, &one).await];
    if crash == Crash::Copying {
        fs::write(upload.join("00002.1"), b"").unwrap();
        let assembly = fs::File::options().write(true).open(upload.join("assembly1")).unwrap();
        assembly.write_all_at(&two[..MIB], PART as u64).unwrap();
    }
    parts.push(scene.put(2, &two).await);
    let mut crashed = Crashed { scene, parts, body: [one, two].concat(), receipt: None };
    if !matches!(crash, Crash::Founding | Crash::Claims | Crash::Copying) {
        crashed.publish(crash).await;
    }
    crashed
}

fn names(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into()).collect()
}

impl Crashed {
    async fn publish(&mut self, crash: Crash) {
        let (upload, object) = (self.scene.upload(), self.scene.object());
        let before = self.scene.root.path().join("before");
        fs::create_dir(&before).unwrap();
        // Hard links, so that locks, seals and records are those of the files themselves. Of the assembly, a copy: what
        // it was before.
        for name in names(&upload) {
            if name == Path::new("assembly1") {
                fs::copy(upload.join(&name), before.join(&name)).unwrap();
            } else if name == Path::new(".slipway,records") {
                fs::create_dir(before.join(&name)).unwrap();
                for record in names(&upload.join(&name)).into_iter().map(|record| name.join(record)) {
                    fs::hard_link(upload.join(&record), before.join(&record)).unwrap();
                }
            } else {
                fs::hard_link(upload.join(&name), before.join(&name)).unwrap();
            }
        }
        let receipt = self.scene.complete(&self.parts).await.unwrap();
        let completed = self.scene.bucket().join(".slipway/completed").join(self.scene.id.as_str());
        fs::rename(&before, &upload).unwrap();
        let journal = upload.join("completing");
        if crash != Crash::Receipt {
            fs::rename(&completed, &journal).unwrap();
        }
        match crash {
            Crash::Journal => fs::remove_file(&object).unwrap(),
            Crash::TornJournal => {
                fs::remove_file(&object).unwrap();
                fs::write(&journal, b"").unwrap();
            }
            Crash::Linked | Crash::LinkedAndDeleted => {
                fs::rename(&object, upload.join("assembly1")).unwrap();
                fs::hard_link(upload.join("assembly1"), &object).unwrap();
                if crash == Crash::LinkedAndDeleted {
                    // As a version that is kept would be.
                    fs::rename(&object, self.scene.bucket().join("elsewhere")).unwrap();
                }
            }
            Crash::JournalLost => {
                if self.scene.assembly().is_some() {
                    fs::remove_file(upload.join("assembly1")).unwrap();
                }
                fs::remove_file(&journal).unwrap();
            }
            Crash::Renamed => fs::remove_file(upload.join("assembly1")).unwrap(),
            Crash::RenamedAndReplaced => {
                fs::remove_file(upload.join("assembly1")).unwrap();
                self.scene.fixture.put("d/object", b"newer").await;
            }
            Crash::NoDescription => fs::remove_file(upload.join("upload")).unwrap(),
            _ => {}
        }
        if !matches!(crash, Crash::Journal | Crash::TornJournal) {
            self.receipt = Some(receipt);
        }
        if crash == Crash::NoDescription {
            fs::create_dir_all(completed.parent().unwrap()).unwrap();
            fs::rename(&journal, &completed).unwrap();
        }
    }

    fn check_object(&self, crash: Crash) {
        match crash {
            Crash::LinkedAndDeleted => assert!(!self.scene.object().exists()),
            Crash::RenamedAndReplaced => assert_eq!(self.scene.bytes(), b"newer"),
            _ => assert!(self.scene.bytes() == self.body, "{crash:?}"),
        }
    }
}

#[tokio::test]
async fn a_complete_that_was_interrupted_is_done_when_repeated() {
    for kind in crashes() {
        let crashed = crash(kind).await;
        let receipt =
            crashed.scene.complete(&crashed.parts).await.unwrap_or_else(|e| panic!("{kind:?}: {e}"));
        if let Some(expected) = &crashed.receipt {
            assert_eq!(receipt, *expected, "{kind:?}");
        }
        crashed.check_object(kind);
        assert_eq!(crashed.scene.complete_on(0, &crashed.parts).await.unwrap(), receipt, "{kind:?}");
        crashed.scene.sweep().await;
        assert!(!crashed.scene.upload().exists(), "{kind:?}");
    }
}

#[tokio::test]
async fn a_complete_that_was_interrupted_is_ended_or_undone_by_the_sweep() {
    for kind in crashes() {
        let crashed = crash(kind).await;
        crashed.scene.sweep().await;
        assert!(!crashed.scene.upload().join("completing").exists(), "{kind:?}");
        if let Some(expected) = &crashed.receipt {
            // Without a journal, it is found out only when someone asks.
            assert_eq!(crashed.scene.upload().exists(), kind == Crash::JournalLost, "{kind:?}");
            assert_eq!(crashed.scene.complete(&crashed.parts).await.unwrap(), *expected, "{kind:?}");
        } else {
            assert!(crashed.scene.listed().await.unwrap().len() >= 2, "{kind:?}");
            crashed.scene.complete(&crashed.parts).await.unwrap();
        }
        crashed.check_object(kind);
    }
}

#[tokio::test]
async fn a_complete_that_was_interrupted_can_be_aborted_unless_it_happened() {
    for kind in crashes() {
        let crashed = crash(kind).await;
        let (scene, cx) = (&crashed.scene, Context::default());
        let abort = scene.gateways[1].abort_upload(&cx, scene.name()).await;
        if let Some(expected) = &crashed.receipt {
            assert!(matches!(abort, Err(BackendError::NoSuchUpload)), "{kind:?}: {abort:?}");
            assert_eq!(scene.complete(&crashed.parts).await.unwrap(), *expected, "{kind:?}");
            crashed.check_object(kind);
        } else {
            abort.unwrap();
            assert!(!scene.object().exists() && !scene.upload().exists(), "{kind:?}");
            let again = scene.complete(&crashed.parts).await;
            assert!(matches!(again, Err(BackendError::NoSuchUpload)), "{kind:?}: {again:?}");
        }
    }
}
