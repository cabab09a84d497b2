//! A request that somebody asks about: who, what, with which values of condition keys.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use ::policy::{Action, DoneWith, Facts, Key, Party, PartyKind, Resource, Value};
use iam::{Account, AccountId};
use s3_types::{BucketName, ObjectKey, Timestamp};

use super::files::{near_action, near_key};

/// The principal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    /// The kind.
    pub kind: PartyKind,
    /// The account; `None` for the anonymous.
    account: Option<AccountId>,
    arn: String,
    /// The name of a user.
    user: Option<String>,
    issuer: Option<String>,
}

/// The target of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `*`: nothing that has an ARN.
    Nothing,
    /// A bucket.
    Bucket(BucketName),
    /// An object.
    Object(BucketName, ObjectKey),
    /// Something of another service.
    Other(String),
}

/// A condition key with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: String,
}

const ANONYMOUS: &str = "anonymous";

/// Reads an action.
pub fn action(text: &str) -> Result<Action, String> {
    Action::named(text).ok_or_else(|| match near_action(text) {
        Some(near) => format!("there is no such action: did you mean {near}?"),
        None => "there is no such action: expected one such as s3:GetObject, without wildcards".to_owned(),
    })
}

/// Reads `KEY=VALUE`.
pub fn condition(text: &str) -> Result<Given, String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as aws:SourceIp=192.0.2.7")?;
    let key = Key::named(name).ok_or_else(|| match near_key(name) {
        Some(near) => format!("there is no condition key {name:?}: did you mean {near}?"),
        None => format!("there is no condition key {name:?}: expected one such as aws:SourceIp"),
    })?;
    Ok(Given { key, value: value.to_owned() })
}

/// Reads an account id.
pub fn account(text: &str) -> Result<AccountId, String> {
    AccountId::new(text).map_err(|e| e.to_string())
}

/// Reads the ARN of a resource, or `*`.
pub fn target(text: &str) -> Result<Target, String> {
    if text == "*" {
        return Ok(Target::Nothing);
    }
    let wrong = || "expected an ARN, such as arn:aws:s3:::BUCKET/KEY, or * for an action of no resource";
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    let ["arn", "aws", service, region, account, tail] = parts[..] else { return Err(wrong().to_owned()) };
    if service != "s3" {
        let is_whole = !service.is_empty() && !tail.is_empty();
        return if is_whole { Ok(Target::Other(text.to_owned())) } else { Err(wrong().to_owned()) };
    }
    if !(region.is_empty() && account.is_empty()) {
        return Err("the ARNs of buckets and objects have no region and no account: arn:aws:s3:::BUCKET/KEY"
            .to_owned());
    }
    let (bucket, key) = tail.split_once('/').map_or((tail, None), |(bucket, key)| (bucket, Some(key)));
    let bucket = BucketName::new(bucket).map_err(|e| format!("the bucket {bucket:?}: {e}"))?;
    match key {
        None => Ok(Target::Bucket(bucket)),
        Some(key) => Ok(Target::Object(bucket, ObjectKey::new(key).map_err(|e| format!("the key: {e}"))?)),
    }
}

/// Reads the ARN of a principal.
pub fn requester(text: &str) -> Result<Requester, String> {
    let wrong = || {
        "expected the ARN of a user (arn:aws:iam::ACCOUNT:user/NAME), of an account's root \
         (arn:aws:iam::ACCOUNT:root), of a session (arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION, \
         arn:aws:sts::ACCOUNT:federated-user/NAME), or anonymous"
            .to_owned()
    };
    let (mut user, mut issuer) = (None, None);
    if text == ANONYMOUS {
        let arn = String::new();
        return Ok(Requester { kind: PartyKind::Anonymous, account: None, arn, user, issuer });
    }
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    let ["arn", "aws", service, "", account_id, who] = parts[..] else { return Err(wrong()) };
    let (form, name) = who.split_once('/').unwrap_or((who, ""));
    let kind = match (service, form) {
        ("iam", "root") if name.is_empty() => PartyKind::Root,
        ("iam", "user") if !name.is_empty() && !name.ends_with('/') => {
            user = name.rsplit('/').next().map(str::to_owned);
            PartyKind::User
        }
        ("sts", "assumed-role") => {
            let (role, _) = name
                .split_once('/')
                .filter(|(role, session)| !role.is_empty() && !session.is_empty() && !session.contains('/'))
                .ok_or_else(wrong)?;
            issuer = Some(format!("arn:aws:iam::{account_id}:role/{role}"));
            PartyKind::RoleSession
        }
        ("sts", "federated-user") if !name.is_empty() => PartyKind::FederatedUser,
        ("iam", "role") => {
            return Err(format!(
                "a role makes requests in sessions: give the ARN of one, \
                 arn:aws:sts::{account_id}:assumed-role/{}/SESSION",
                name.rsplit('/').next().unwrap_or(name)
            ));
        }
        _ => return Err(wrong()),
    };
    let account = Some(account(account_id)?);
    Ok(Requester { kind, account, arn: text.to_owned(), user, issuer })
}

impl Requester {
    /// Sets the role of a session, or the user who federated.
    pub fn set_issuer(&mut self, arn: &str) -> Result<(), String> {
        let wanted = match self.kind {
            PartyKind::RoleSession => "role/",
            PartyKind::FederatedUser => "user/",
            _ => {
                return Err(
                    "--issuer has an effect only with the --principal of a session: leave it out".to_owned()
                );
            }
        };
        let start = format!("arn:aws:iam::{}:{wanted}", self.account.as_ref().map_or("", AccountId::as_str));
        if !arn.starts_with(&start) || arn.len() == start.len() {
            return Err(format!("--issuer: expected an ARN that begins with {start}"));
        }
        self.issuer = Some(arn.to_owned());
        Ok(())
    }

    /// Returns the id of the account; empty for the anonymous.
    pub fn account_id(&self) -> &str {
        self.account.as_ref().map_or("", AccountId::as_str)
    }

    /// Returns the name for people.
    pub fn title(&self) -> &str {
        if self.kind == PartyKind::Anonymous { ANONYMOUS } else { &self.arn }
    }

    /// Returns the principal as policies name it. `canonical_id` is what
    /// [`Requester::canonical_id`] returns.
    pub fn party<'r>(&'r self, canonical_id: &'r str) -> Party<'r> {
        Party {
            kind: self.kind,
            account: self.account_id(),
            canonical_id,
            arn: &self.arn,
            issuer: self.issuer.as_deref(),
            id: None,
            issuer_id: None,
        }
    }

    /// Returns the canonical id of the account; empty for the anonymous.
    pub fn canonical_id(&self) -> String {
        let of = |account: &AccountId| Account::new(account.clone()).canonical_id().to_owned();
        self.account.as_ref().map(of).unwrap_or_default()
    }

    /// The values of condition keys that follow from the principal: those that a gateway gives.
    fn values(&self) -> Vec<(&'static str, &str)> {
        let kind = match self.kind {
            PartyKind::Root => "Account",
            PartyKind::User => "User",
            PartyKind::RoleSession => "AssumedRole",
            PartyKind::FederatedUser => "FederatedUser",
            PartyKind::Anonymous | PartyKind::Service | PartyKind::Federated => "Anonymous",
        };
        let mut values = vec![
            ("aws:PrincipalType", kind),
            ("aws:PrincipalIsAWSService", "false"),
            ("aws:ViaAWSService", "false"),
        ];
        if let Some(account) = &self.account {
            let role = self.issuer.as_deref().filter(|_| self.kind == PartyKind::RoleSession);
            values.push(("aws:PrincipalAccount", account.as_str()));
            values.push(("aws:PrincipalArn", role.unwrap_or(&self.arn)));
        }
        values.extend(self.user.as_deref().map(|user| ("aws:username", user)));
        values
    }
}

impl Target {
    /// Returns the resource as policies are compared with it.
    pub fn resource(&self, action: Action) -> Resource<'_> {
        match self {
            Self::Nothing if action.service() == "s3" => Resource::Service,
            Self::Nothing => Resource::Arn("*"),
            Self::Bucket(bucket) => Resource::Bucket(bucket.as_str()),
            Self::Object(bucket, key) => Resource::Object(bucket.as_str(), key.as_str()),
            Self::Other(arn) => Resource::Arn(arn),
        }
    }

    /// Returns the name of the bucket, if there is one.
    pub fn bucket(&self) -> Option<&str> {
        match self {
            Self::Bucket(bucket) | Self::Object(bucket, _) => Some(bucket.as_str()),
            Self::Nothing | Self::Other(_) => None,
        }
    }

    /// Returns the account in the ARN, if there is one.
    pub fn account(&self) -> Option<AccountId> {
        let Self::Other(arn) = self else { return None };
        AccountId::new(arn.split(':').nth(4)?).ok()
    }

    /// True for the role that an action of STS is about: what its trust policy says counts.
    pub fn is_role(&self) -> bool {
        let Self::Other(arn) = self else { return false };
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        matches!(parts[..], [_, _, "iam", "", _, role] if role.starts_with("role/"))
    }

    /// Refuses a resource that the action cannot be done with.
    pub fn fits(&self, action: Action) -> Result<(), String> {
        if matches!(action.service(), "iam" | "sts") && self.bucket().is_some() {
            return Err(format!(
                "{action} is not done with a bucket: give the ARN of another resource, or *"
            ));
        }
        if action.service() != "s3" {
            return Ok(());
        }
        match (action.done_with(), self) {
            (DoneWith::Object, Self::Object(..))
            | (DoneWith::Bucket, Self::Bucket(_))
            | (DoneWith::Other, _) => Ok(()),
            (DoneWith::Object, _) => {
                Err(format!("{action} is done with an object: give arn:aws:s3:::BUCKET/KEY"))
            }
            (DoneWith::Bucket, _) => Err(format!("{action} is done with a bucket: give arn:aws:s3:::BUCKET")),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("*"),
            Self::Bucket(bucket) => write!(f, "arn:aws:s3:::{}", bucket.as_str()),
            Self::Object(bucket, key) => write!(f, "arn:aws:s3:::{}/{}", bucket.as_str(), key.as_str()),
            Self::Other(arn) => f.write_str(arn),
        }
    }
}

/// The values of condition keys.
#[derive(Debug)]
pub struct Values {
    /// The values by condition key, in lower case.
    all: BTreeMap<String, Vec<String>>,
    /// True if the object may have tags that nobody told.
    unknown_tags: bool,
}

fn name_of(key: &Key) -> String {
    key.to_string().to_ascii_lowercase()
}

impl Values {
    /// Puts together what is given, and what else follows from the principal, the owner of the
    /// resource and the moment. If no owner is given, it is the principal's account.
    pub fn new(
        by: &Requester,
        target: &Target,
        owner: Option<&str>,
        given: &[Given],
        now: Timestamp,
    ) -> Result<Self, String> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for one in given {
            let values = all.entry(name_of(&one.key)).or_default();
            values.push(one.value.clone());
            if values.len() > 1 && one.key.spec().is_some() && !one.key.is_many() {
                return Err(format!("--condition: {} has one value at most, and is given twice", one.key));
            }
        }
        let has_tags = given.iter().any(|one| one.key.is_of_object());
        let (time, seconds) = (now.to_string(), now.as_second().to_string());
        let of_moment = [("aws:CurrentTime", time.as_str()), ("aws:EpochTime", seconds.as_str())];
        let owner = owner.unwrap_or(by.account_id());
        let has_owner = target.bucket().is_some() && !owner.is_empty();
        let of_owner = ["aws:ResourceAccount", "s3:ResourceAccount"].map(|key| (key, owner));
        let of_owner = of_owner.into_iter().filter(|_| has_owner);
        for (name, value) in by.values().into_iter().chain(of_moment).chain(of_owner) {
            all.entry(name.to_ascii_lowercase()).or_insert_with(|| vec![value.to_owned()]);
        }
        Ok(Self { all, unknown_tags: !has_tags && matches!(target, Target::Object(..)) })
    }

    /// Adds values of keys that have none.
    pub fn with(mut self, values: &[(String, String)]) -> Self {
        for (name, value) in values {
            self.all.entry(name.to_ascii_lowercase()).or_insert_with(|| vec![value.clone()]);
        }
        self
    }
}

impl Facts for Values {
    fn value(&self, key: &Key) -> Value<'_> {
        match self.all.get(&name_of(key)).map(Vec::as_slice) {
            None if self.unknown_tags && key.is_of_object() => Value::Unknown,
            None | Some([]) => Value::Absent,
            Some([value]) if !key.is_many() => Value::text(value),
            Some(values) => Value::Many(values.iter().map(|value| Cow::Borrowed(value.as_str())).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_have_their_kind() {
        let of = |text: &str| requester(text).unwrap();
        let user = of("arn:aws:iam::111122223333:user/staff/ann");
        assert_eq!((user.kind, user.account_id()), (PartyKind::User, "111122223333"));
        assert!(user.values().contains(&("aws:username", "ann")));
        assert_eq!(of("arn:aws:iam::111122223333:root").kind, PartyKind::Root);
        let mut session = of("arn:aws:sts::111122223333:assumed-role/reader/night");
        let role = "arn:aws:iam::111122223333:role/reader";
        assert!(session.values().contains(&("aws:PrincipalArn", role)));
        session.set_issuer("arn:aws:iam::111122223333:role/path/reader").unwrap();
        assert!(session.set_issuer("arn:aws:iam::444455556666:role/reader").is_err());
        assert!(user.clone().set_issuer(role).is_err());
        assert_eq!(of("arn:aws:sts::111122223333:federated-user/bob").kind, PartyKind::FederatedUser);
        assert_eq!(of("anonymous").party("").kind, PartyKind::Anonymous);
        for wrong in [
            "",
            "ann",
            "111122223333",
            "arn:aws:iam::1111:user/ann",
            "arn:aws:iam::111122223333:user/",
            "arn:aws:iam::111122223333:group/a",
            "arn:aws:sts::111122223333:assumed-role/reader",
            "arn:aws:sts::111122223333:assumed-role/a/b/c",
            "arn:aws:s3:::bucket",
        ] {
            assert!(requester(wrong).is_err(), "{wrong}");
        }
        let error = requester("arn:aws:iam::111122223333:role/path/reader").unwrap_err();
        assert!(error.ends_with("assumed-role/reader/SESSION"), "{error}");
    }

    #[test]
    fn resources_fit_their_action() {
        let fits = |name: &str, arn: &str| target(arn).unwrap().fits(action(name).unwrap()).is_ok();
        assert!(fits("s3:GetObject", "arn:aws:s3:::lab/a/b"));
        assert!(!fits("s3:GetObject", "arn:aws:s3:::lab"));
        assert!(fits("s3:ListBucket", "arn:aws:s3:::lab"));
        assert!(!fits("s3:ListBucket", "arn:aws:s3:::lab/x"));
        assert!(fits("s3:ListAllMyBuckets", "*"));
        assert!(fits("iam:GetUser", "arn:aws:iam::111122223333:user/ann"));
        assert!(!fits("iam:GetUser", "arn:aws:s3:::lab"));
        assert!(target("arn:aws:iam::111122223333:role/a").unwrap().is_role());
        for wrong in [
            "",
            "lab/x",
            "arn:aws:s3:::",
            "arn:aws:s3:::l*/x",
            "arn:aws:s3:us-east-1::lab",
            "arn:aws:s3:::lab/",
        ] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_given_or_follow() {
        let ann = requester("arn:aws:iam::111122223333:user/ann").unwrap();
        let object = target("arn:aws:s3:::lab/x").unwrap();
        let of = |given: &[&str]| {
            let given: Vec<Given> = given.iter().map(|text| condition(text).unwrap()).collect();
            Values::new(&ann, &object, Some("444455556666"), &given, Timestamp::UNIX_EPOCH)
        };
        let values =
            of(&["AWS:sourceip=192.0.2.7", "aws:TagKeys=a", "aws:TagKeys=b", "aws:username=eve"]).unwrap();
        let value = |name: &str| values.value(&Key::named(name).unwrap());
        assert_eq!(value("aws:SourceIp"), Value::text("192.0.2.7"));
        assert_eq!(value("aws:TagKeys"), Value::Many(vec!["a".into(), "b".into()]));
        assert_eq!(value("aws:username"), Value::text("eve"));
        assert_eq!(value("aws:ResourceAccount"), Value::text("444455556666"));
        assert_eq!(value("aws:EpochTime"), Value::text("0"));
        assert_eq!(value("s3:ExistingObjectTag/team"), Value::Unknown);
        assert_eq!(value("s3:prefix"), Value::Absent);
        let tagged = of(&["s3:ExistingObjectTag/team=red"]).unwrap();
        assert_eq!(tagged.value(&Key::named("s3:ExistingObjectTag/other").unwrap()), Value::Absent);
        assert!(of(&["aws:SourceIp=1", "aws:SourceIp=2"]).is_err());
        for wrong in ["aws:SourceIp", "aws:SourceIq=1", "=1", "x=1"] {
            assert!(condition(wrong).is_err(), "{wrong}");
        }
    }
}
