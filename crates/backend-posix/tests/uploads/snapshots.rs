//! Snapshots of uploads in progress, as backup tools make them.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use backend::{AbortRequest, Backend, Context};
use backend_posix::tools::{FsckOptions, Problem, ProblemKind, Progress, fsck};

use crate::fixture;
use crate::scene::{PART, Scene, body};

/// A snapshot by hard links, as backup tools make them.
fn snapshot(scene: &Scene) -> PathBuf {
    let copy = scene.root.path().join("snapshot");
    fixture::link_all(&scene.upload(), &copy);
    copy
}

fn assert_nothing_to_repair(scene: &Scene) {
    let options = FsckOptions { repair: false, buckets: Vec::new(), age: Duration::ZERO, jobs: 1 };
    let found = Mutex::new(Vec::new());
    let report = |problem: Problem| found.lock().unwrap().push(problem.kind);
    fsck(scene.root.path(), &options, &Progress::default(), &report).unwrap();
    let parts = found.into_inner().unwrap().iter().filter(|kind| **kind == ProblemKind::PartDamaged).count();
    assert_eq!(parts, 0);
}

/// A hard link to a file of an upload harms neither the upload in progress nor the snapshot.
#[tokio::test]
async fn a_snapshot_by_hard_links_leaves_uploads_alone() {
    if fixture::skips("snapshots of an assembly are") {
        return;
    }
    let scene = Scene::new().await;
    let bodies = [body(1, PART), body(2, PART), body(3, PART), body(4, 10)];
    let mut parts = Vec::new();
    for n in [0, 1] {
        parts.push(scene.put(n + 1, &bodies[n as usize]).await);
    }
    let copy = snapshot(&scene);
    let before = fs::read(copy.join("assembly1")).unwrap();
    assert_nothing_to_repair(&scene);
    for n in [2, 3] {
        parts.push(scene.put(n + 1, &bodies[n as usize]).await);
    }
    assert_eq!(scene.listed().await.unwrap().len(), 4);
    let receipt = scene.complete(&parts).await.unwrap();
    assert!(scene.bytes() == bodies.concat());
    assert!(fs::read(copy.join("assembly1")).unwrap() == before);
    assert_eq!(scene.complete(&parts).await.unwrap(), receipt);
    // Restored, it is an upload like any other.
    fs::remove_file(scene.bucket().join(".slipway/completed").join(scene.id.as_str())).unwrap();
    fs::remove_file(scene.object()).unwrap();
    fs::rename(&copy, scene.upload()).unwrap();
    let assembly = scene.assembly();
    scene.complete(&parts[..2]).await.unwrap();
    scene.assert_became(assembly);
    assert!(scene.bytes() == bodies[..2].concat());
}

#[tokio::test]
async fn a_snapshot_of_a_sealed_upload_leaves_it_alone() {
    for abort in [false, true] {
        let scene = Scene::new().await;
        let bodies = [body(1, PART), body(2, PART)];
        let parts = [scene.put(1, &bodies[0]).await, scene.put(2, &bodies[1]).await];
        // Refused after the seal.
        fs::create_dir_all(scene.object().join(".slipway,self")).unwrap();
        assert!(scene.complete(&parts).await.is_err());
        fs::remove_dir_all(scene.object()).unwrap();
        snapshot(&scene);
        assert_nothing_to_repair(&scene);
        scene.sweep().await;
        assert_eq!(scene.listed().await.unwrap().len(), 2);
        if abort {
            scene.gateways[0]
                .abort_upload(&Context::default(), AbortRequest { upload: scene.name(), if_initiated: None })
                .await
                .unwrap();
            assert!(!scene.object().exists());
        } else {
            scene.complete(&parts).await.unwrap();
            assert!(scene.bytes() == bodies.concat());
        }
    }
}
