//! Makes the identities of another server in an account of this one. All of them are one change of
//! one document, which is made as a whole or not at all.

use std::collections::{BTreeMap, BTreeSet};

use iam::model::limits::{ATTACHED_MAX, GROUPS_PER_USER_MAX};
use iam::model::{
    AccountDocument, Context, Document, Holder, IamError, KeyOwner, Name, NewKey, NewPolicy, NewUser, Path,
    PolicyArn, Posix, Tags, User,
};
use iam::{AccessKeyId, Credential, SecretKey};
use zeroize::Zeroizing;

use super::keys::{Taken, WantedKey, check_free, take_key};
use super::rows::{Became, Kind, Outcome, Row, refused};

/// The name of the inline policy that the import gives a user.
const OWN_POLICY: &str = "imported";

/// A managed policy to be made.
pub struct WantedPolicy {
    /// The name of the policy at the other server.
    pub name: String,
    /// The policy for this server; `None` if it concerns only the other server; or the reason why
    /// it cannot be imported.
    pub document: Result<Option<Document>, String>,
    /// True if the policy denies something: a user who does not get it might be allowed more than
    /// before.
    pub denies: bool,
    /// A remark for the report; empty if there is none.
    pub note: String,
}

/// A group to be made.
pub struct WantedGroup {
    /// The name of the group.
    pub name: String,
    /// The names of the policies that the group has.
    pub policies: Vec<String>,
    /// A remark for the report; empty if there is none.
    pub note: String,
}

/// A user to be made. The name at the other server is the access key.
pub struct WantedUser {
    /// The user's name, which is also the access key.
    pub name: String,
    /// The secret key.
    pub secret: Zeroizing<String>,
    /// True if the key is to be inactive.
    pub disabled: bool,
    /// The POSIX identity.
    pub posix: Option<Posix>,
    /// The ARN of the built-in policy that the user gets.
    pub built_in: Option<&'static str>,
    /// The user's inline policy.
    pub own: Option<Document>,
    /// The names of the other policies that the user has.
    pub policies: Vec<String>,
    /// The names of the user's groups.
    pub groups: Vec<String>,
    /// A remark for the report; empty if there is none.
    pub note: String,
    /// The things that the user had at the other server and does not get.
    pub left: Vec<String>,
}

/// Everything that is to be made.
#[derive(Default)]
pub struct Wanted {
    /// The policies.
    pub policies: Vec<WantedPolicy>,
    /// The groups.
    pub groups: Vec<WantedGroup>,
    /// The users.
    pub users: Vec<WantedUser>,
    /// The keys of their services.
    pub keys: Vec<WantedKey>,
    /// The rows of identities that are not imported at all.
    pub rows: Vec<Row>,
}

/// The entities that were made, or existed, and that others can refer to.
#[derive(Default)]
struct Made {
    policies: BTreeMap<String, PolicyArn>,
    groups: BTreeMap<String, Name>,
    /// The policies that contain nothing for this server, so that nobody has to get them.
    nothing: BTreeSet<String>,
    /// The policies and groups that were not made, and would deny something.
    denying: BTreeSet<String>,
}

/// Makes everything in `document`, and returns a row for each thing.
pub fn take_over(
    wanted: &Wanted,
    taken: &Taken<'_>,
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Vec<Row> {
    let mut made = Made::default();
    let mut rows = Vec::new();
    for policy in &wanted.policies {
        let (outcome, why) = take_policy(policy, &mut made, document, cx);
        rows.push(Row::new(Kind::Policy, &policy.name, outcome, &[&policy.note, &why]));
    }
    for group in &wanted.groups {
        let (outcome, why) = take_group(group, wanted, &mut made, document, cx);
        rows.push(Row::new(Kind::Group, &group.name, outcome, &[&group.note, &why]));
    }
    let mut users = BTreeSet::new();
    for user in &wanted.users {
        let (outcome, why) = take_user(user, wanted, &made, taken, document, cx);
        if outcome.is_made() {
            users.insert(user.name.as_str());
        }
        rows.push(Row::new(Kind::User, &user.name, outcome, &[&user.note, &why]));
    }
    for key in &wanted.keys {
        let (outcome, why) = take_key(key, &users, taken, document, cx);
        rows.push(Row::new(Kind::ServiceAccount, key.id(), outcome, &[&key.note, &why]));
    }
    rows.extend(wanted.rows.iter().cloned());
    rows
}

fn take_policy(
    wanted: &WantedPolicy,
    made: &mut Made,
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Became {
    let became = make_policy(wanted, document, cx);
    match became {
        Ok((arn, outcome)) => {
            match arn {
                Some(arn) => drop(made.policies.insert(wanted.name.clone(), arn)),
                None => drop(made.nothing.insert(of_policy(&wanted.name))),
            }
            (outcome, String::new())
        }
        Err(became) => {
            if wanted.denies {
                made.denying.insert(of_policy(&wanted.name));
            }
            became
        }
    }
}

fn make_policy(
    wanted: &WantedPolicy,
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Result<(Option<PolicyArn>, Outcome), Became> {
    let text = match &wanted.document {
        Ok(Some(text)) => text,
        Ok(None) => return Ok((None, Outcome::Nothing)),
        Err(why) => return Err(refused(why)),
    };
    let name = Name::new(&wanted.name).map_err(|why| refused(&why))?;
    if let Some((there, policy)) = document.policies.get_key_value(&name) {
        let is_same = there.as_str() == name.as_str()
            && policy.versions.get(&policy.default).is_some_and(|version| version.document == *text);
        let arn = document.policy_arn(there, policy);
        let differs = || (Outcome::Differs, "a policy of this name says something else".to_owned());
        return if is_same { Ok((Some(arn), Outcome::Known)) } else { Err(differs()) };
    }
    let new =
        NewPolicy { name, path: Path::root(), description: None, document: text.clone(), tags: Tags::new() };
    let arn = document.create_policy(&new, cx).map_err(|error| refused(&error.message))?;
    Ok((Some(arn), Outcome::Imported))
}

/// Returns the name of a policy in [`Made::denying`].
fn of_policy(name: &str) -> String {
    format!("the policy {name}")
}

/// Returns the name of a group in [`Made::denying`].
fn of_group(name: &str) -> String {
    format!("the group {name}")
}

/// The policies or groups that a user or group gets, of those that it had.
#[derive(Default)]
struct Share<T> {
    got: Vec<T>,
    /// The policies or groups that it does not get.
    left: Vec<String>,
    /// The items of `left` that would deny something.
    denying: Vec<String>,
}

impl<T: Clone + PartialEq> Share<T> {
    /// Determines which of `names` are in `there`, and gets at most `max` of them.
    fn of(
        names: &[String],
        there: &BTreeMap<String, T>,
        max: usize,
        made: &Made,
        called: fn(&str) -> String,
        denies: impl Fn(&str) -> bool,
    ) -> Self {
        let mut share = Self { got: Vec::new(), left: Vec::new(), denying: Vec::new() };
        for name in names {
            match there.get(name) {
                Some(it) if share.got.contains(it) => {}
                None if made.nothing.contains(&called(name)) => {}
                Some(it) if share.got.len() < max => share.got.push(it.clone()),
                found => {
                    share.left.push(called(name));
                    if made.denying.contains(&called(name)) || (found.is_some() && denies(name)) {
                        share.denying.push(called(name));
                    }
                }
            }
        }
        share
    }
}

impl Wanted {
    fn policy_denies(&self, name: &str) -> bool {
        self.policies.iter().any(|policy| policy.name == name && policy.denies)
    }
}

fn take_group(
    wanted: &WantedGroup,
    all: &Wanted,
    made: &mut Made,
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Became {
    let policies = Share::of(&wanted.policies, &made.policies, ATTACHED_MAX, made, of_policy, |name| {
        all.policy_denies(name)
    });
    match make_group(wanted, &policies.got, document, cx) {
        Ok((name, outcome)) => {
            made.groups.insert(wanted.name.clone(), name);
            if !policies.denying.is_empty() {
                made.denying.insert(of_group(&wanted.name));
            }
            if policies.left.is_empty() {
                return (outcome, String::new());
            }
            (outcome.in_part(), format!("without {}", policies.left.join(", ")))
        }
        Err(became) => {
            if wanted.policies.iter().any(|name| all.policy_denies(name)) {
                made.denying.insert(of_group(&wanted.name));
            }
            became
        }
    }
}

fn make_group(
    wanted: &WantedGroup,
    policies: &[PolicyArn],
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Result<(Name, Outcome), Became> {
    let name = Name::new(&wanted.name).map_err(|why| refused(&why))?;
    if let Some((there, group)) = document.groups.get_key_value(&name) {
        let is_same = there.as_str() == name.as_str()
            && same(&group.attached, policies)
            && group.inline.is_empty()
            && group.external.is_none();
        let differs = || (Outcome::Differs, "a group of this name has other policies".to_owned());
        return if is_same { Ok((there.clone(), Outcome::Known)) } else { Err(differs()) };
    }
    document.create_group(&name, &Path::root(), cx).map_err(|error| refused(&error.message))?;
    let holder = Holder::Group(name.clone());
    for arn in policies {
        if let Err(error) = document.attach_policy(&holder, arn) {
            document.groups.remove(&name);
            return Err(refused(&error.message));
        }
    }
    Ok((name, Outcome::Imported))
}

/// True if both have the same items, in any order.
fn same<T: PartialEq>(left: &[T], right: &[T]) -> bool {
    left.len() == right.len() && left.iter().all(|one| right.contains(one))
}

/// A user that is to be made.
struct Target<'w> {
    name: Name,
    credential: Credential,
    disabled: bool,
    attached: Vec<PolicyArn>,
    groups: Vec<Name>,
    wanted: &'w WantedUser,
}

fn take_user(
    wanted: &WantedUser,
    all: &Wanted,
    made: &Made,
    taken: &Taken<'_>,
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Became {
    let built_in = usize::from(wanted.built_in.is_some());
    let max = ATTACHED_MAX - built_in;
    let denies = |name: &str| all.policy_denies(name);
    let policies = Share::of(&wanted.policies, &made.policies, max, made, of_policy, denies);
    let group_denies = |name: &str| {
        all.groups.iter().any(|group| group.name == name && group.policies.iter().any(|name| denies(name)))
    };
    let mut groups =
        Share::of(&wanted.groups, &made.groups, GROUPS_PER_USER_MAX, made, of_group, group_denies);
    // A group may be there, without a policy that denies.
    let weaker = wanted.groups.iter().map(|name| of_group(name)).filter(|name| made.denying.contains(name));
    groups.denying.extend(weaker.filter(|name| !groups.denying.contains(name)).collect::<Vec<_>>());
    let denying = [policies.denying, groups.denying].concat();
    let mut left: Vec<String> = wanted.left.clone();
    let missing = [policies.left, groups.left].concat();
    if !missing.is_empty() {
        left.push(format!("without {}", missing.join(", ")));
    }
    if !denying.is_empty() {
        left.push(format!(
            "disabled, since it might do more without what is denied by {}: see to that, then `slipway admin user enable`",
            denying.join(", ")
        ));
    }
    let target = match target(wanted, policies.got, groups.got, !denying.is_empty()) {
        Ok(target) => target,
        Err(became) => return became,
    };
    match make_user(&target, taken, document, cx) {
        Ok(outcome) if left.is_empty() => (outcome, String::new()),
        Ok(outcome) => (outcome.in_part(), left.join("; ")),
        Err(became) => became,
    }
}

fn target(
    wanted: &WantedUser,
    policies: Vec<PolicyArn>,
    groups: Vec<Name>,
    withheld: bool,
) -> Result<Target<'_>, Became> {
    let name = Name::new(&wanted.name)
        .map_err(|_| refused(&"its name cannot be one of a user here (letters, digits and _+=,.@-)"))?;
    let credential = Credential {
        access_key: AccessKeyId::new(&wanted.name).map_err(|why| refused(&why))?,
        secret_key: SecretKey::new(&wanted.secret).map_err(|why| refused(&why))?,
    };
    let built_in = wanted.built_in.map(PolicyArn::new).transpose().map_err(|why| refused(&why))?;
    let attached = built_in.into_iter().chain(policies).collect();
    Ok(Target { name, credential, disabled: wanted.disabled || withheld, attached, groups, wanted })
}

fn make_user(
    target: &Target<'_>,
    taken: &Taken<'_>,
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Result<Outcome, Became> {
    let id = &target.credential.access_key;
    if let Some((there, user)) = document.users.get_key_value(&target.name) {
        if there.as_str() != target.name.as_str() {
            return Err((
                Outcome::Differs,
                format!("there is a user {there}, whose name is the same but for case"),
            ));
        }
        let differences = differences(target, user, document, cx);
        if differences.is_empty() {
            return Ok(Outcome::Known);
        }
        let why = format!("the user that is there is left as it is: it has {}", differences.join(", "));
        return Err((Outcome::Differs, why));
    }
    check_free(id, taken, document)?;
    add_user(target, document, cx).map_err(|error| {
        // What was made of it so far.
        document.users.remove(&target.name);
        refused(&error.message)
    })?;
    Ok(Outcome::Imported)
}

fn add_user(target: &Target<'_>, document: &mut AccountDocument, cx: &Context<'_>) -> Result<(), IamError> {
    let name = &target.name;
    let new = NewUser { name: name.clone(), path: Path::root(), boundary: None, tags: Tags::new() };
    document.create_user(&new, cx)?;
    let holder = Holder::User(name.clone());
    for arn in &target.attached {
        document.attach_policy(&holder, arn)?;
    }
    if let (Some(own), Ok(of_own)) = (&target.wanted.own, Name::new(OWN_POLICY)) {
        document.put_inline_policy(&holder, &of_own, own, cx)?;
    }
    for group in &target.groups {
        document.add_user_to_group(group, name)?;
    }
    document.set_user_posix(name, target.wanted.posix.as_ref())?;
    document.set_user_disabled(name, target.disabled)?;
    document.import_access_key(&NewKey::plain(KeyOwner::User(name.clone())), &target.credential, cx)
}

/// Returns the differences between an existing user and the one that would be made.
fn differences(
    target: &Target<'_>,
    user: &User,
    document: &AccountDocument,
    cx: &Context<'_>,
) -> Vec<&'static str> {
    let id = &target.credential.access_key;
    let owner = KeyOwner::User(target.name.clone());
    let has_key = user.keys.iter().any(|key| key.id == *id && key.policy.is_none());
    let secret = cx.master_keys.map(|keys| document.secret_of(&owner, id, keys));
    let has_secret = matches!(&secret, Some(Ok(Some(secret)))
        if secret.expose() == target.credential.secret_key.expose());
    let own: Vec<&Document> = target.wanted.own.iter().collect();
    let has_own = user.inline.values().collect::<Vec<_>>() == own;
    [
        (has_key, "not this access key"),
        (!has_key || has_secret, "another secret key"),
        (same(&user.attached, &target.attached) && has_own, "other policies"),
        (same(&user.groups, &target.groups), "other groups"),
        (user.posix == target.wanted.posix, "another POSIX identity"),
        (user.disabled == target.disabled, if user.disabled { "been disabled" } else { "been enabled" }),
    ]
    .into_iter()
    .filter_map(|(is_same, what)| (!is_same).then_some(what))
    .collect()
}
