//! Files in place whose records say the order or the id of another version: copies, and what users
//! wrote.

use super::*;

/// Puts an object whose version was given an id early.
fn put_as_early(scene: &Scene, key: &str, body: &[u8], id: u64) -> Published {
    let target = target(scene, key, Versioning::Enabled);
    let mut stage = target.stage(&scene.store).unwrap();
    stage.staged.append(&[bytes::Bytes::copy_from_slice(body)]).unwrap();
    let mut record = record_of(body);
    record.version = target.new_version().unwrap().map(|version| version.given(Some(id)));
    let sealed = stage.staged.seal(&stage.bucket, None, record).unwrap();
    target.publish(scene.bucket(), None, sealed).unwrap()
}

/// Puts a file in the place of a key, whose record says a version, as another program may do.
fn forge(scene: &Scene, key: &str, version: Version) {
    let mut record = record_of(b"forged");
    record.version = Some(version);
    let _ = fs::remove_file(scene.path().join(key));
    fs::write(scene.path().join(key), b"forged").unwrap();
    scene.set_raw_record(key, &crate::record::to_bytes(&record));
}

/// The ids and the bodies of the versions in a listing.
fn listed(scene: &Scene) -> Vec<(Named, Vec<u8>)> {
    let object = |item| match item {
        VersionItem::Object { object, .. } => named(object.version),
        item => panic!("{item:?}"),
    };
    let ids = list(scene, "", None, 100).into_iter().map(object);
    ids.map(|id| (id, read(scene, "a", Some(id)).unwrap())).collect()
}

/// A user who may write a file may give it the order or the id of another version.
#[test]
fn a_forged_version_hides_and_replaces_none() {
    for (kind, keeps_early) in [(0, false), (1, false), (2, false), (3, true), (4, true)] {
        let Some(scene) = scene() else { return };
        let first = if keeps_early {
            let published = put_as_early(&scene, "a", b"1", 7);
            named(published.version.unwrap().text())
        } else {
            put(&scene, "a", b"1")
        };
        let second = put(&scene, "a", b"2");
        let Named::Number(number) = first else { panic!() };
        let order = chain(&scene, "a")[0].order;
        let version = |order, id| Version { order, id, is_marker: false };
        let forged = match kind {
            0 | 1 => version(number, [Id::Order, Id::Null][kind]),
            2 => version(number & !1, Id::Early(9)),
            3 => version(order, Id::Early(7)),
            _ => version(order + 2, Id::Early(7)),
        };
        for n in 0..3 {
            forge(&scene, "a", forged);
            assert_eq!(read(&scene, "a", Some(first)).unwrap(), b"1", "{kind}");
            assert_eq!(read(&scene, "a", Some(Named::Null)).unwrap(), b"forged", "{kind}");
            let before = listed(&scene);
            let ids: std::collections::BTreeSet<_> = before.iter().map(|(id, _)| format!("{id:?}")).collect();
            assert_eq!((before.len(), ids.len()), (n + 2, n + 2), "{kind}: {before:?}");
            assert_eq!(before[0], (Named::Null, b"forged".to_vec()), "{kind}");
            put(&scene, "a", format!("put {n}").as_bytes());
            let after = listed(&scene);
            assert_eq!((after.len(), &*after[0].1), (n + 3, format!("put {n}").as_bytes()), "{kind}");
        }
        assert_eq!(read(&scene, "a", Some(first)).unwrap(), b"1", "{kind}");
        missing(&read(&scene, "a", Some(second)));
        // The one that is meant is deleted.
        forge(&scene, "a", forged);
        assert!(remove(&scene, "a", Some(first)).existed);
        assert_eq!(scene.get("a").unwrap(), b"forged", "{kind}");
    }
}

/// A record with what no gateway writes is damaged, so that later versions have orders.
#[test]
fn an_order_that_cannot_be_is_not_believed() {
    for (order, id) in [(u64::MAX - 1, Id::Order), (u64::MAX, Id::Order), (8, Id::Early(6))] {
        let said = Version { order, id, is_marker: false };
        let mut record = record_of(b"forged");
        record.version = Some(said);
        let read: std::result::Result<ObjectRecord, _> =
            crate::record::from_bytes(&crate::record::to_bytes(&record));
        assert!(read.is_err(), "{said:?}");
    }
    assert!(order_after(Some(order_after(None))) < order_after(None) + (1 << 40));
}

/// A backup of an object is put back again and again, with its attributes.
#[test]
fn a_copy_that_is_put_back_replaces_no_version() {
    let Some(scene) = scene() else { return };
    put_as(&scene, "a", b"null", Versioning::Suspended).unwrap();
    let mut raw = vec![0; 4096];
    let attribute = crate::layout::records::ATTRIBUTE;
    let length = rustix::fs::getxattr(scene.path().join("a"), attribute, &mut raw[..]).unwrap();
    raw.truncate(length);
    for n in 0..5 {
        put(&scene, "a", format!("put {n}").as_bytes());
        fs::write(scene.path().join("copy"), b"null").unwrap();
        scene.set_raw_record("copy", &raw);
        fs::rename(scene.path().join("copy"), scene.path().join("a")).unwrap();
    }
    // The PUTs are gone with their names, as files are; each copy is kept.
    put(&scene, "a", b"last");
    let bodies: Vec<_> = listed(&scene).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [&b"last"[..], b"null", b"null", b"null", b"null", b"null", b"null"]);
}
