use std::sync::Arc;

use backend::{CopyRequest, CreateUploadRequest, NewUpload};
use backend_null::NullBackend;
use policy::Value;
use s3_types::{ActionSet, Conditions, ObjectLock, Retention, RetentionMode, S3Action, Timestamp};

use super::{OBJECT, OTHER, Scene, all_actions, is_misuse, only, put};

/// Each kind of lock needs a permission of its own, whether it comes with a write, an upload or a
/// copy.
#[tokio::test]
async fn locks_need_their_own_permission() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    let (everything, resources) = (only(all_actions()), scene.resources());
    let asker = scene.asker(&everything);
    let source = scene.allowed(&asker, resources[OBJECT], S3Action::GetObject.into());
    let retention = Some(Retention::new(RetentionMode::Governance, Timestamp::MAX));
    let retained = ObjectLock { retention, legal_hold: None };
    let held = ObjectLock { retention: None, legal_hold: Some(false) };
    let own = ActionSet::from(S3Action::PutObject);
    let (retains, holds) = (own.and(S3Action::PutObjectRetention), own.and(S3Action::PutObjectLegalHold));
    for (lock, actions, is_enough) in
        [(retained, holds, false), (retained, retains, true), (held, retains, false), (held, holds, true)]
    {
        let target = scene.allowed(&asker, resources[OTHER], actions);
        let object = scene.copy(scene.object()).target;
        let copy = CopyRequest { lock, ..scene.copy(scene.object()) };
        let mut write = put(object, Conditions::default());
        write.options.lock = lock;
        let upload = NewUpload { lock, ..NewUpload::default() };
        let with_tags = scene.allowed(&asker, resources[OTHER], actions.and(S3Action::PutObjectTagging));
        let copied = with_tags.copy_object(&source, copy).await.map(drop);
        let results = [
            copied,
            target.put_object(write).await.map(drop),
            target.create_upload(CreateUploadRequest { object, upload }).await.map(drop),
        ];
        assert!(results.iter().all(|result| is_misuse(result) != is_enough), "{lock:?}: {results:?}");
    }
}

/// The header is no permission.
#[tokio::test]
async fn a_bypass_needs_its_own_permission() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    let resource = scene.resources()[OBJECT];
    let deletes = ActionSet::from(S3Action::DeleteObject);
    for (granted, may) in [(deletes, false), (deletes.and(S3Action::BypassGovernanceRetention), true)] {
        let authorizer = only(granted);
        let asker = scene.asker(&authorizer);
        let allowed = scene.allowed(&asker, resource, deletes);
        assert!(!allowed.may_bypass());
        assert_eq!(allowed.with_bypass(&|_| Value::Absent).may_bypass(), may);
    }
}
