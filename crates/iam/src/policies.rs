//! The authorizer that decides by policies, and the values that a request has for their condition
//! keys.

use std::borrow::Cow;
use std::sync::LazyLock;

use policy::{Action, Documents, Facts, Key, Party, PartyKind, Request, Value, all_keys};
use s3_types::{S3Action, Tag};

use crate::authorize::{Authorizer, KnownObject, Question, Values};
use crate::condition_key::ConditionKey;
use crate::decision::{DecidedBy, Decision, Explained};
use crate::explained::{decision, explain};
use crate::session::{Principal, PrincipalKind, Requester, Session};

/// Decides by the policies of the session and of the bucket (docs/decisions/0039-policies.md).
#[derive(Debug, Clone, Copy, Default)]
pub struct Policies;

impl Authorizer for Policies {
    fn decide(&self, question: &Question<'_>) -> Decision {
        // The key that the server was started with.
        if question.requester.is_root() {
            return Decision::Allow;
        }
        match with_documents(question, policy::decide) {
            Ok(verdict) => decision(verdict),
            Err(instead) => instead,
        }
    }

    fn decide_explained(&self, question: &Question<'_>) -> Explained {
        if question.requester.is_root() {
            return Explained::without(Decision::Allow, DecidedBy::Root);
        }
        let names = question.requester.session().map(|session| &*session.permissions.names);
        with_documents(question, |request, documents| explain(request, documents, names)).unwrap_or_else(
            |instead| {
                let by = match instead {
                    Decision::Deny => DecidedBy::UnreadablePolicy,
                    _ => DecidedBy::NoStatement,
                };
                Explained::without(instead, by)
            },
        )
    }

    /// Returns S3's own sentence about the reason. As on S3, only a requester of the bucket's
    /// account gets it, because it says something about the policies.
    fn reason(&self, question: &Question<'_>) -> Option<String> {
        let account = &question.requester.session()?.principal.account;
        if question.rules.is_some_and(|rules| rules.owner.id() != account.id()) {
            return None;
        }
        let principal = &question.requester.session()?.principal;
        let action = question.action.as_str();
        let why = self.decide_explained(question).why_not(action)?;
        let on = question.resource.arn().map(|arn| format!(" on resource: \"{arn}\"")).unwrap_or_default();
        Some(format!("User: {} is not authorized to perform: {action}{on} {why}", principal.arn))
    }
}

/// Calls `decide` with the question in the form of the policy engine. The error is the decision,
/// where it does not depend on policies.
fn with_documents<T>(
    question: &Question<'_>,
    decide: impl FnOnce(&Request<'_>, &Documents<'_>) -> T,
) -> Result<T, Decision> {
    let action = Action::of_s3(question.action).ok_or(Decision::NoGrant)?;
    let (bucket, key) = (question.resource.bucket, question.resource.key);
    let resource = match (bucket, key) {
        (None, _) => policy::Resource::Service,
        (Some(bucket), None) => policy::Resource::Bucket(bucket.as_str()),
        (Some(bucket), Some(key)) => policy::Resource::Object(bucket.as_str(), key.as_str()),
    };
    let session = question.requester.session();
    let party = session.map_or(Party::anonymous(), |session| party(&session.principal));
    let mut documents = Documents::default();
    if let (Some(rules), Some(bucket)) = (question.rules, bucket) {
        documents.owner = Some(rules.owner.id().as_str());
        documents.is_restricted = rules.is_restricted(bucket);
        documents.resource = match rules.compiled(bucket) {
            Ok(policy) => policy,
            // It may deny anything; the owner's root may replace it.
            Err(_) if is_repair(&party, question.action, documents.owner) => None,
            Err(_) => return Err(Decision::Deny),
        };
    }
    if let Some(session) = session {
        documents.identity = &session.permissions.identity;
        documents.boundary = session.permissions.boundary.as_deref();
        documents.session = session.permissions.session.as_deref();
    }
    let object = if key.is_some() && has_object_tags(question.action) {
        question.object
    } else {
        KnownObject::Missing
    };
    let facts = RequestFacts { requester: question.requester, object, values: question.values };
    Ok(decide(&Request { party, action, resource, facts: &facts }, &documents))
}

/// True for the actions for which requests have values of `s3:ExistingObjectTag/KEY`. A write of an
/// object and its deletion are not among them.
///
/// Source: "Actions, resources, and condition keys for Amazon S3" in the Service Authorization
/// Reference.
const fn has_object_tags(action: S3Action) -> bool {
    use S3Action as A;
    matches!(
        action,
        A::GetObject
            | A::GetObjectVersion
            | A::GetObjectAttributes
            | A::GetObjectVersionAttributes
            | A::GetObjectAcl
            | A::GetObjectVersionAcl
            | A::PutObjectAcl
            | A::PutObjectVersionAcl
            | A::GetObjectTagging
            | A::GetObjectVersionTagging
            | A::PutObjectTagging
            | A::PutObjectVersionTagging
            | A::DeleteObjectTagging
            | A::DeleteObjectVersionTagging
    )
}

pub(crate) fn party(principal: &Principal) -> Party<'_> {
    Party {
        kind: match principal.kind {
            PrincipalKind::Root => PartyKind::Root,
            PrincipalKind::User => PartyKind::User,
            PrincipalKind::Role => PartyKind::RoleSession,
            PrincipalKind::FederatedUser | PrincipalKind::DirectoryUser => PartyKind::FederatedUser,
        },
        account: principal.account.id().as_str(),
        canonical_id: principal.account.canonical_id(),
        arn: &principal.arn,
        issuer: principal.issuer.as_deref(),
        id: principal.unique_id.as_deref(),
        issuer_id: principal.issuer_id.as_deref(),
    }
}

/// True for the actions by which the root of the bucket owner's account may read, replace or delete
/// a policy that cannot be read.
fn is_repair(party: &Party<'_>, action: S3Action, owner: Option<&str>) -> bool {
    let is_of_policy = matches!(
        action,
        S3Action::GetBucketPolicy | S3Action::PutBucketPolicy | S3Action::DeleteBucketPolicy
    );
    is_of_policy && party.kind == PartyKind::Root && owner == Some(party.account)
}

/// The source of the value of a condition key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The request, as the operation or the gateway knows it.
    Request(ConditionKey),
    /// The name of the user.
    UserName,
    /// The unique id of the principal.
    UserId,
    /// The ARN of the principal; for the sessions of a role, the ARN of the role.
    Arn,
    /// The account of the principal.
    Account,
    /// The kind of the principal.
    Kind,
    /// Always false: a principal is never a service, nor does a service act for one.
    IsService,
    /// A tag of the session.
    SessionTag,
    /// The time at which the session's token was issued.
    TokenTime,
    /// The source identity of the session.
    TokenIdentity,
    /// A tag of the object.
    ObjectTag,
    /// No source: no request has a value for the key yet.
    Nowhere,
}

/// The sources of all keys, in the order of [`all_keys`].
static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let source = |name: &str| match name {
        "aws:username" => Source::UserName,
        "aws:userid" => Source::UserId,
        "aws:PrincipalArn" => Source::Arn,
        "aws:PrincipalAccount" => Source::Account,
        "aws:PrincipalType" => Source::Kind,
        "aws:PrincipalIsAWSService" | "aws:ViaAWSService" => Source::IsService,
        "aws:PrincipalTag/" => Source::SessionTag,
        "aws:TokenIssueTime" => Source::TokenTime,
        "aws:SourceIdentity" => Source::TokenIdentity,
        "s3:ExistingObjectTag/" => Source::ObjectTag,
        other => {
            let of_request = ConditionKey::ALL.iter().find(|key| key.as_str().eq_ignore_ascii_case(other));
            of_request.map_or(Source::Nowhere, |key| Source::Request(*key))
        }
    };
    all_keys().iter().map(|spec| source(spec.name)).collect()
});

/// The condition keys for which actions of IAM and STS have values, and requests of S3 do not.
pub const KEYS_OF_ACTIONS: [&str; 11] = [
    "aws:FederatedProvider",
    "aws:RequestTag/",
    "aws:ResourceTag/",
    "aws:TagKeys",
    "iam:PermissionsBoundary",
    "iam:PolicyARN",
    "iam:ResourceTag/",
    "sts:ExternalId",
    "sts:RoleSessionName",
    "sts:SourceIdentity",
    "sts:TransitiveTagKeys",
];

/// True for a condition key for which requests to a gateway never have a value: a key of another
/// service, of something that only AWS has, or of something that gateways do not have yet, such as
/// locks. `of_actions` says that actions of IAM or STS are among the requests.
pub fn is_always_absent(key: &Key, of_actions: bool) -> bool {
    let (Key::Known(at) | Key::Tagged(at, _)) = key else { return true };
    let at = usize::from(*at);
    let is_of_action = || all_keys().get(at).is_some_and(|spec| KEYS_OF_ACTIONS.contains(&spec.name));
    let is_nowhere = SOURCES.get(at).is_none_or(|source| *source == Source::Nowhere);
    is_nowhere && !(of_actions && is_of_action())
}

/// The values of a request, in the form in which the policy engine asks for them.
pub(crate) struct RequestFacts<'q> {
    pub requester: &'q Requester,
    pub object: KnownObject<'q>,
    pub values: &'q Values<'q>,
}

impl Facts for RequestFacts<'_> {
    fn value(&self, key: &Key) -> Value<'_> {
        let (source, tag) = match key {
            Key::Known(at) => (SOURCES.get(usize::from(*at)), ""),
            Key::Tagged(at, tag) => (SOURCES.get(usize::from(*at)), &**tag),
            Key::Foreign(_) => (None, ""),
        };
        let Some(source) = source else { return Value::Absent };
        match source {
            Source::Request(key @ ConditionKey::RequestObjectTag) => one_of((self.values)(*key), tag),
            Source::Request(key) => (self.values)(*key),
            Source::IsService => Value::text("false"),
            Source::Kind => Value::text(kind(self.requester)),
            Source::ObjectTag => self.object_tag(tag),
            Source::Nowhere => Value::Absent,
            Source::SessionTag => {
                let tags = self.requester.session().map_or(&[][..], |session| &session.tags);
                tag_value(pairs(tags), tag)
            }
            of_session => match self.requester.session() {
                Some(session) => of_principal(*of_session, session).into(),
                None => Value::Absent,
            },
        }
    }
}

impl RequestFacts<'_> {
    fn object_tag(&self, tag: &str) -> Value<'_> {
        match self.object {
            KnownObject::NotYet => Value::Unknown,
            KnownObject::Missing => Value::Absent,
            KnownObject::Facts(facts) => tag_value(pairs(facts.tags.unwrap_or_default()), tag),
        }
    }
}

/// Returns the value of a condition key about the tags that a request sets on an object; none for
/// other keys, and without tags.
pub fn request_tags(tags: &[Tag], key: ConditionKey) -> Value<'_> {
    if tags.is_empty() {
        return Value::Absent;
    }
    match key {
        ConditionKey::RequestObjectTagKeys => {
            Value::Many(tags.iter().map(|(key, _)| Cow::Borrowed(&**key)).collect())
        }
        ConditionKey::RequestObjectTag => Value::Many(
            tags.iter().flat_map(|(key, value)| [Cow::Borrowed(&**key), Cow::Borrowed(&**value)]).collect(),
        ),
        _ => Value::Absent,
    }
}

/// Returns the value of one of the tags in a value of [`ConditionKey::RequestObjectTag`].
fn one_of<'v>(tags: Value<'v>, wanted: &str) -> Value<'v> {
    let Value::Many(texts) = tags else { return tags };
    let found =
        |is: &dyn Fn(&str) -> bool| texts.chunks_exact(2).find(|tag| is(&tag[0])).map(|tag| tag[1].clone());
    found(&|key| key == wanted).or_else(|| found(&|key| key.eq_ignore_ascii_case(wanted))).into()
}

fn of_principal(source: Source, session: &Session) -> Option<&str> {
    let principal = &session.principal;
    match source {
        Source::UserName => {
            let has_name = matches!(principal.kind, PrincipalKind::User | PrincipalKind::DirectoryUser);
            has_name.then_some(&principal.name)
        }
        Source::UserId => principal.unique_id.as_deref(),
        Source::Account => Some(principal.account.id().as_str()),
        Source::Arn if principal.kind == PrincipalKind::Role => {
            Some(principal.issuer.as_deref().unwrap_or(&principal.arn))
        }
        Source::Arn => Some(&principal.arn),
        Source::TokenTime => session.token.as_ref().map(|token| &*token.issued),
        Source::TokenIdentity => session.token.as_ref()?.source.as_deref(),
        _ => None,
    }
}

fn pairs(tags: &[(Box<str>, Box<str>)]) -> impl Iterator<Item = (&str, &str)> {
    tags.iter().map(|(key, value)| (&**key, &**value))
}

/// Returns the value of a condition key about one tag, such as `aws:ResourceTag/team`: that of the
/// tag with the key `wanted`. Conditions ignore the case of a tag's key, so that a tag whose key
/// differs only in case counts if no tag has the very key: of two tags, the condition is about one.
///
/// Source: "AWS global condition context keys" in the IAM User Guide, "aws:ResourceTag/tag-key".
pub fn tag_value<'t>(tags: impl IntoIterator<Item = (&'t str, &'t str)>, wanted: &str) -> Value<'t> {
    let mut alike = Value::Absent;
    for (key, value) in tags {
        if key == wanted {
            return Value::text(value);
        }
        if alike == Value::Absent && key.eq_ignore_ascii_case(wanted) {
            alike = Value::text(value);
        }
    }
    alike
}

/// Returns the value of `aws:PrincipalType`. Source: "IAM policy elements: Variables and tags" in
/// the IAM User Guide, "Principal key values".
fn kind(requester: &Requester) -> &'static str {
    match requester.session().map(|session| session.principal.kind) {
        None => "Anonymous",
        Some(PrincipalKind::Root) => "Account",
        Some(PrincipalKind::User) => "User",
        Some(PrincipalKind::Role) => "AssumedRole",
        Some(PrincipalKind::FederatedUser | PrincipalKind::DirectoryUser) => "FederatedUser",
    }
}

#[cfg(test)]
mod tests;
