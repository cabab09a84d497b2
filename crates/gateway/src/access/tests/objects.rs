//! Tests of permissions that depend on facts of the object.

use std::sync::Arc;
use std::time::Duration;

use backend::{BackendError, Call, CopySide, Result};
use backend_null::NullBackend;
use iam::{
    AccessKeyId, Authorizer, Credential, Decision, KeyKind, KnownObject, Principal, Question, Requester,
    SecretKey, Session,
};
use s3_types::{ActionSet, NeededFacts, S3Action, Timestamp};

use super::{OBJECT, OTHER, Scene, USES, all_actions, must_match, only, put};
use crate::access::asker::has_ended;
use crate::access::{Asker, Refused};

/// Needs the object for some actions, and then decides by whether the object exists.
#[derive(Debug)]
struct ByObject {
    of: ActionSet,
    allows: fn(bool) -> bool,
}

impl Authorizer for ByObject {
    fn decide(&self, question: &Question<'_>) -> Decision {
        let exists = match question.object {
            _ if !self.of.has(question.action) => return Decision::Allow,
            KnownObject::NotYet => return Decision::NeedsObject(NeededFacts { acl: false, tags: true }),
            KnownObject::Missing => false,
            KnownObject::Facts(_) => true,
        };
        if (self.allows)(exists) { Decision::Allow } else { Decision::NoGrant }
    }
}

const IF_THERE: fn(bool) -> bool = |exists| exists;
const IF_MISSING: fn(bool) -> bool = |exists| !exists;
const NEVER: fn(bool) -> bool = |_| false;
const ALWAYS: fn(bool) -> bool = |_| true;

fn by_object(of: impl Into<ActionSet>, allows: fn(bool) -> bool) -> Arc<dyn Authorizer> {
    Arc::new(ByObject { of: of.into(), allows })
}

fn is_denied(result: &Result<()>, side: CopySide) -> bool {
    match result {
        Err(BackendError::NotAllowed) => true,
        Err(BackendError::Copy { side: of, error }) => {
            *of == side && matches!(**error, BackendError::NotAllowed)
        }
        _ => false,
    }
}

/// The calls that act on an object. The others act only on uploads.
const MEET_OBJECTS: [Call; 10] = [
    Call::HeadObject,
    Call::GetObject,
    Call::PutObject,
    Call::DeleteObject,
    Call::CopyObject,
    Call::CompleteUpload,
    Call::ObjectTags,
    Call::PutObjectTags,
    Call::ObjectLock,
    Call::PutObjectLock,
];

#[tokio::test]
async fn what_needs_the_object_is_decided_by_it() {
    // Where every object exists.
    let scene = Scene::new(Arc::new(NullBackend::new()));
    let resources = scene.resources();
    let everything = only(all_actions());
    let all_allowed = scene.asker(&everything);
    let source = scene.allowed(&all_allowed, resources[OBJECT], all_actions());
    for (action, about, call, use_of) in USES {
        for (allows_old, decide) in [(true, IF_THERE), (false, IF_MISSING)] {
            let by_object = by_object(action, decide);
            let asker = scene.asker(&by_object);
            let answer = scene.ask(&asker, resources[about], action.into());
            if resources[about].key.is_none() {
                assert_eq!(
                    answer.err(),
                    Some(Refused::Denied(action)),
                    "{call:?}: a bucket is not an object"
                );
                continue;
            }
            let authorized = answer.unwrap();
            let detached = authorized.detach();
            for authorized in [&authorized, &detached.authorized()] {
                let result = use_of(&scene, authorized, &source).await;
                let meets = MEET_OBJECTS.contains(&call);
                let what = format!("{action:?} by {call:?}: {result:?}");
                assert_eq!(is_denied(&result, CopySide::Target), meets != allows_old, "{what}");
                let reached = !std::mem::take(&mut *scene.calls.0.lock().unwrap()).is_empty();
                assert_eq!(reached, meets || !allows_old, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_copy_is_decided_by_its_source_too() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    let resources = scene.resources();
    for (is_allowed, decide) in [(true, IF_THERE), (false, NEVER)] {
        let by_object = by_object(S3Action::GetObject, decide);
        let asker = scene.asker(&by_object);
        let source = scene.allowed(&asker, resources[OBJECT], S3Action::GetObject.into());
        let target = scene.allowed(&asker, resources[OTHER], S3Action::PutObject.into());
        let results = [
            target.copy_object(&source, scene.copy(scene.object())).await.map(drop),
            target.copy_part(&source, scene.copy_part(scene.object())).await.map(drop),
        ];
        for result in results {
            assert_eq!(is_denied(&result, CopySide::Source), !is_allowed, "{result:?}");
        }
    }
}

#[tokio::test]
async fn an_action_that_is_allowed_does_not_allow_one_that_needs_the_object() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    // As for a write that must match an ETag.
    let by_object = by_object(S3Action::GetObject, NEVER);
    let asker = scene.asker(&by_object);
    let actions = ActionSet::from(S3Action::PutObject).and(S3Action::GetObject);
    let authorized = scene.allowed(&asker, scene.resources()[OBJECT], actions);
    let denied = authorized.put_object(put(scene.object(), must_match())).await.map(drop);
    assert!(is_denied(&denied, CopySide::Target), "{denied:?}");
}

/// A session that ends while a request is performed gets no further permission, and a permission
/// that depends on the object is denied.
#[tokio::test]
async fn a_session_that_has_ended_is_allowed_nothing_more() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    let resource = scene.resources()[OBJECT];
    let credential = Credential {
        access_key: AccessKeyId::new("temporary").unwrap(),
        secret_key: SecretKey::new("a-secret-of-mine").unwrap(),
    };
    let root = Principal::root(scene.rules.owner.clone(), None);
    let soon = Timestamp::now().checked_add(Duration::from_secs(2)).unwrap();
    let session = Session { expires: Some(soon), ..Session::new(root, credential, KeyKind::Temporary) };
    let requester = Requester::Session(Arc::new(session));
    let (everything, by_object) = (only(all_actions()), by_object(S3Action::GetObject, ALWAYS));
    let asker = Asker { requester: &requester, ..scene.asker(&everything) };
    let deciding = Asker { requester: &requester, ..scene.asker(&by_object) };
    let granted = scene.allowed(&asker, resource, S3Action::GetObject.into());
    let waiting = scene.allowed(&deciding, resource, S3Action::GetObject.into());
    while !has_ended(&requester) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    granted.head_object(scene.read(scene.object())).await.unwrap();
    let denied = waiting.head_object(scene.read(scene.object())).await.map(drop);
    assert!(is_denied(&denied, CopySide::Source), "{denied:?}");
    for actions in [ActionSet::NONE, S3Action::GetObject.into()] {
        assert_eq!(scene.ask(&asker, resource, actions).err(), Some(Refused::Ended));
    }
}
