//! `slipway import versitygw-users`: makes the users of Versity S3 Gateway users of the account.
//!
//! An administrator there becomes one here. The rights of others depended on the access lists of
//! buckets, which are not used here: each grant becomes a statement in the user's own policy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backend_posix::tools::{BucketGrants, GrantKind, grants_by_versitygw};
use clap::Args;
use iam::model::limits::{POLICY_CHARS_MAX, USER_POLICIES_CHARS_MAX};
use iam::model::{Document, Posix};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use zeroize::Zeroizing;

use super::file::{self, unique};
use super::rows::{self, Kind, Row};
use super::taking::{Wanted, WantedPolicy, WantedUser};
use super::tree::{Common, Tree};
use crate::commands::master_key::TreeOptions;
use crate::commands::{Console, shown};
use crate::values::whole;

/// The ARN of the policy for administrators.
const ADMINISTRATOR: &str = "arn:aws:iam::aws:policy/AdministratorAccess";
/// The actions on a bucket for a user who could read it.
const READ_BUCKET: [&str; 4] =
    ["s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads", "s3:GetBucketLocation"];
/// The actions on a bucket's objects for a user who could read the bucket.
const READ_OBJECTS: [&str; 4] =
    ["s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectTagging", "s3:ListMultipartUploadParts"];
/// The actions on a bucket's objects for a user who could write to the bucket.
const WRITE_OBJECTS: [&str; 5] = [
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:PutObjectTagging",
    "s3:DeleteObjectTagging",
];

/// Options of `slipway import versitygw-users`.
#[derive(Debug, Clone, Args)]
pub struct VersitygwUsersOptions {
    /// The tree, and its master key.
    #[command(flatten)]
    pub tree: TreeOptions,

    /// The file users.json, from the directory in which Versity S3 Gateway kept its users
    #[arg(value_name = "USERS")]
    pub users: PathBuf,

    /// The directory in which Versity S3 Gateway kept metadata, if it ran with --sidecar. The
    /// owners and access lists of buckets are read from there
    #[arg(long, value_name = "SIDECARDIR")]
    pub sidecar: Option<PathBuf>,

    /// The lowest uid that is imported. A user with a lower uid is imported without uid and gid,
    /// and reported. Give the same value as to `slipway serve`
    #[arg(long, value_name = "UID", env = "SLIPWAY_UID_MIN", default_value = "1000", value_parser = whole::<u32, 1, 4_294_967_294>)]
    pub uid_min: u32,

    /// The options of all imports of identities.
    #[command(flatten)]
    pub common: Common,
}

/// The content of the file with the users.
#[derive(Deserialize)]
struct File {
    #[serde(rename = "accessAccounts", deserialize_with = "unique")]
    users: BTreeMap<String, Theirs>,
}

/// A user in the file.
#[derive(Deserialize)]
struct Theirs {
    secret: Zeroizing<String>,
    role: String,
    #[serde(rename = "userID", default)]
    uid: i64,
    #[serde(rename = "groupID", default)]
    gid: i64,
}

/// Imports the users, and prints the results.
pub fn run(options: &VersitygwUsersOptions) -> ExitCode {
    let console = Console::new();
    match import(options) {
        Ok(rows) => rows::print(&rows, options.common.shape(), &console),
        Err(why) => console.fail(&why),
    }
}

fn import(options: &VersitygwUsersOptions) -> Result<Vec<Row>, String> {
    let users = read(&options.users).map_err(|why| format!("{}: {why}", shown(&options.users)))?;
    let tree = Tree::open(&options.tree, options.common.dry_run)?;
    let buckets = grants_by_versitygw(&options.tree.dir, options.sidecar.as_deref())?;
    tree.take_over(&wanted(&users, &buckets, options.uid_min), options.common.dry_run)
}

fn read(path: &Path) -> Result<BTreeMap<String, Theirs>, String> {
    let bytes = file::read(path)?;
    let file: File = serde_json::from_slice(&bytes)
        .map_err(|e| format!("it is no users.json of Versity S3 Gateway: {}", file::place(&e)))?;
    Ok(file.users)
}

/// The rights that users had in buckets, by access key.
type Grants<'b> = BTreeMap<&'b str, Vec<(&'b str, GrantKind)>>;

fn wanted(users: &BTreeMap<String, Theirs>, buckets: &[BucketGrants], uid_min: u32) -> Wanted {
    let mut wanted = Wanted::default();
    let grants = grants_of_users(users, buckets, &mut wanted.rows);
    for (name, theirs) in users {
        let own = grants.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        match user(name, theirs, own, uid_min) {
            Ok((user, policies)) => {
                wanted.policies.extend(policies);
                wanted.users.push(user);
            }
            Err(why) => wanted.rows.push(Row::left(Kind::User, name, &why)),
        }
    }
    wanted
}

/// Sorts the grants by users. Grants that no user gets are reported in `rows`.
fn grants_of_users<'b>(
    users: &BTreeMap<String, Theirs>,
    buckets: &'b [BucketGrants],
    rows: &mut Vec<Row>,
) -> Grants<'b> {
    let mut all = Grants::new();
    for BucketGrants { bucket, grants, has_policy } in buckets {
        let mut left = |why: &str| rows.push(Row::left(Kind::Bucket, bucket.as_str(), why));
        let grants = match grants {
            _ if *has_policy => {
                left(
                    "it had a bucket policy, which alone decided: nobody gets rights in it. Put one that names users here",
                );
                continue;
            }
            Ok(grants) => grants,
            Err(why) => {
                left(&format!("its access list cannot be read, so that nobody gets rights in it: {why}"));
                continue;
            }
        };
        for grant in grants {
            match &grant.to {
                None => left("everybody could use it: put a bucket policy if that is still wanted"),
                Some(to) if grant.kind == GrantKind::AccessList && users.contains_key(to) => {
                    left(&format!("{to} could read or change its access list, which is not used here"));
                }
                Some(to) => all.entry(to).or_default().push((bucket.as_str(), grant.kind)),
            }
        }
    }
    all
}

/// Makes a user from one of the other gateway, and the managed policies that the user needs.
fn user(
    name: &str,
    theirs: &Theirs,
    grants: &[(&str, GrantKind)],
    uid_min: u32,
) -> Result<(WantedUser, Vec<WantedPolicy>), String> {
    let (built_in, documents) = match theirs.role.as_str() {
        "admin" => (Some(ADMINISTRATOR), Vec::new()),
        "userplus" => (None, documents(&statements(grants, true))),
        "user" => (None, documents(&statements(grants, false))),
        _ => return Err("its role is none of admin, user and userplus".to_owned()),
    };
    let (posix, mut notes, left) = posix(theirs, uid_min);
    notes.insert(0, theirs.role.clone());
    let mut user = WantedUser {
        name: name.to_owned(),
        secret: theirs.secret.clone(),
        disabled: false,
        posix,
        built_in,
        own: None,
        policies: Vec::new(),
        groups: Vec::new(),
        note: notes.join(", "),
        left,
    };
    let fits_in_user = |only: &String| only.chars().count() <= USER_POLICIES_CHARS_MAX;
    if let [only] = &documents[..]
        && fits_in_user(only)
    {
        user.own = Some(Document::new(only).map_err(|e| e.to_string())?);
        return Ok((user, Vec::new()));
    }
    let mut policies = Vec::new();
    for (at, document) in documents.iter().enumerate() {
        let policy = format!("versitygw-{name}-{}", at + 1);
        user.policies.push(policy.clone());
        let document = Document::new(document).map(Some).map_err(|e| e.to_string());
        policies.push(WantedPolicy { name: policy, document, denies: false, note: String::new() });
    }
    Ok((user, policies))
}

/// Returns the POSIX identity of a user, remarks about it, and the things that are not imported.
fn posix(theirs: &Theirs, uid_min: u32) -> (Option<Posix>, Vec<String>, Vec<String>) {
    let (uid, gid) = (theirs.uid, theirs.gid);
    let left =
        |why: &str| (None, Vec::new(), vec![format!("no POSIX identity: uid {uid}, gid {gid}: {why}")]);
    match (u32::try_from(uid), u32::try_from(gid)) {
        // Versity S3 Gateway writes 0 where nothing was said.
        (Ok(0), Ok(0)) => (None, vec!["no POSIX identity (uid 0, gid 0)".to_owned()], Vec::new()),
        (Ok(uid), Ok(gid)) => match Posix::ids(uid, gid, Vec::new()) {
            Err(why) => left(why),
            Ok(_) if uid < uid_min => left("the uid is below --uid-min"),
            Ok(posix) => (Some(posix), vec![format!("uid {uid}, gid {gid}")], Vec::new()),
        },
        _ => left("these are no ids"),
    }
}

/// A statement: its actions, and the ARNs of its resources.
type Statement = (Vec<&'static str>, Vec<String>);

/// Returns the statements for what a user may do.
fn statements(grants: &[(&str, GrantKind)], may_create: bool) -> Vec<Statement> {
    let everywhere = || vec!["*".to_owned()];
    let of = |kind: GrantKind| {
        let buckets = grants.iter().filter(move |(_, granted)| *granted == kind).map(|(bucket, _)| *bucket);
        buckets.collect::<BTreeSet<_>>()
    };
    let bucket = |name: &str| format!("arn:aws:s3:::{name}");
    let objects = |name: &str| format!("arn:aws:s3:::{name}/*");
    let mut all: Vec<Statement> = Vec::new();
    let mut add = |actions: &[&'static str], resources: Vec<String>| {
        if !resources.is_empty() {
            all.push((actions.to_vec(), resources));
        }
    };
    let own = of(GrantKind::All);
    add(&["s3:*"], own.iter().flat_map(|name| [bucket(name), objects(name)]).collect());
    let less = |kind| of(kind).into_iter().filter(|name| !own.contains(name)).collect::<Vec<_>>();
    let read = less(GrantKind::Read);
    add(&READ_BUCKET, read.iter().map(|name| bucket(name)).collect());
    add(&READ_OBJECTS, read.iter().map(|name| objects(name)).collect());
    add(&WRITE_OBJECTS, less(GrantKind::Write).iter().map(|name| objects(name)).collect());
    if may_create {
        add(&["s3:CreateBucket"], everywhere());
    }
    if !all.is_empty() {
        all.push((vec!["s3:ListAllMyBuckets"], everywhere()));
    }
    all
}

/// Puts statements in documents, in as few as the size limit allows.
fn documents(statements: &[Statement]) -> Vec<String> {
    let (mut documents, mut open): (Vec<String>, Vec<Json>) = (Vec::new(), Vec::new());
    for (actions, resources) in statements {
        let mut first = 0;
        while first < resources.len() {
            let fits = |count: usize| {
                let more = statement(actions, &resources[first..first + count]);
                let all = [open.as_slice(), &[more]].concat();
                document(&all).len() <= POLICY_CHARS_MAX
            };
            // Of resources there are thousands at most, and of documents ten are of use.
            let count = (1..=resources.len() - first).take_while(|count| fits(*count)).last().unwrap_or(0);
            if count == 0 && open.is_empty() {
                // One resource always fits.
                break;
            }
            if count > 0 {
                open.push(statement(actions, &resources[first..first + count]));
                first += count;
            }
            if first < resources.len() {
                documents.push(document(&std::mem::take(&mut open)));
            }
        }
    }
    if !open.is_empty() {
        documents.push(document(&open));
    }
    documents
}

fn statement(actions: &[&str], resources: &[String]) -> Json {
    json!({ "Effect": "Allow", "Action": actions, "Resource": resources })
}

fn document(statements: &[Json]) -> String {
    json!({ "Version": "2012-10-17", "Statement": statements }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theirs(role: &str, uid: i64, gid: i64) -> Theirs {
        Theirs { secret: Zeroizing::new("a-secret-of-mine".to_owned()), role: role.to_owned(), uid, gid }
    }

    #[test]
    fn each_role_gets_what_it_could_do() {
        let grants = [("lab", GrantKind::All), ("other", GrantKind::Read), ("lab", GrantKind::Read)];
        let (user, more) = user("ann", &theirs("user", 0, 0), &grants, 1_000).unwrap();
        let own = user.own.unwrap();
        assert!(more.is_empty() && user.built_in.is_none() && user.posix.is_none() && user.left.is_empty());
        let own: Json = serde_json::from_str(own.as_str()).unwrap();
        let statements = own["Statement"].as_array().unwrap();
        assert_eq!(statements.len(), 4);
        assert_eq!(statements[0]["Resource"], json!(["arn:aws:s3:::lab", "arn:aws:s3:::lab/*"]));
        assert_eq!(statements[1]["Resource"], json!(["arn:aws:s3:::other"]));
        assert!(!own.to_string().contains("CreateBucket"));
        let (none, _) = super::user("bob", &theirs("user", 0, 0), &[], 1_000).unwrap();
        assert!(none.own.is_none());
        let (plus, _) = super::user("bob", &theirs("userplus", 0, 0), &[], 1_000).unwrap();
        assert!(plus.own.unwrap().as_str().contains("s3:CreateBucket"));
        let (admin, _) = super::user("bob", &theirs("admin", 0, 0), &grants, 1_000).unwrap();
        assert_eq!((admin.built_in, admin.own), (Some(ADMINISTRATOR), None));
        assert!(super::user("bob", &theirs("root", 0, 0), &[], 1_000).is_err());
    }

    #[test]
    fn ids_of_root_and_of_the_system_are_refused() {
        for (uid, gid) in
            [(0, 100), (1_000, 0), (999, 1_000), (-1, 1_000), (1 << 32, 1_000), (u32::MAX.into(), 1_000)]
        {
            let (posix, _, left) = posix(&theirs("user", uid, gid), 1_000);
            assert!(posix.is_none() && left.len() == 1, "{uid} {gid}");
        }
        assert!(posix(&theirs("user", 1_000, 7), 1_000).0.is_some());
    }

    #[test]
    fn many_buckets_take_several_policies() {
        let names: Vec<String> = (0..200).map(|n| format!("bucket-with-a-long-name-{n:03}")).collect();
        let grants: Vec<_> = names.iter().map(|name| (name.as_str(), GrantKind::All)).collect();
        let (user, policies) = user("ann", &theirs("user", 0, 0), &grants, 1_000).unwrap();
        assert!(user.own.is_none() && policies.len() > 1 && user.policies.len() == policies.len());
        let texts: Vec<String> =
            policies.iter().map(|p| p.document.clone().unwrap().unwrap().as_str().to_owned()).collect();
        assert!(texts.iter().all(|text| text.len() <= POLICY_CHARS_MAX));
        for name in &names {
            let count = texts.iter().filter(|text| text.contains(&format!("{name}/*\""))).count();
            assert_eq!(count, 1, "{name}");
        }
    }
}
