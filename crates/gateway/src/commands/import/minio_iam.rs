//! `slipway import minio-iam`: the identities of a MinIO server, from the archive that
//! `mc admin cluster iam export` makes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use zeroize::Zeroizing;

use super::archive::{self, Archive};
use super::file::{self, unique};
use super::keys::WantedKey;
use super::minio_accounts::ServiceAccount;
use super::minio_policy::{Translated, translate};
use super::rows::{self, Kind, Row};
use super::taking::{Wanted, WantedGroup, WantedPolicy, WantedUser};
use super::tree::{Common, Tree};
use crate::commands::master_key::TreeOptions;
use crate::commands::{Console, shown};

/// Options of `slipway import minio-iam`.
#[derive(Debug, Clone, Args)]
pub struct MinioIamOptions {
    /// The tree, and its master key.
    #[command(flatten)]
    pub tree: TreeOptions,

    /// The archive that `mc admin cluster iam export` made, a ZIP file
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,

    /// The options of all imports of identities.
    #[command(flatten)]
    pub common: Common,
}

/// A file in which no name is there twice.
#[derive(Deserialize)]
#[serde(transparent, bound = "T: Deserialize<'de>")]
struct Names<T>(#[serde(deserialize_with = "unique")] BTreeMap<String, T>);

#[derive(Deserialize)]
struct User {
    #[serde(rename = "secretKey", default)]
    secret: Zeroizing<String>,
    #[serde(default)]
    status: String,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    status: String,
    #[serde(default)]
    members: Option<Vec<String>>,
}

/// Policies of somebody: names with commas between them.
#[derive(Deserialize)]
struct Mapping {
    #[serde(default)]
    policy: String,
}

impl Mapping {
    fn names(&self) -> Vec<String> {
        self.policy.split(',').filter(|name| !name.trim().is_empty()).map(str::to_owned).collect()
    }
}

/// The files, read.
struct Export {
    policies: BTreeMap<String, Json>,
    users: BTreeMap<String, User>,
    groups: BTreeMap<String, Group>,
    service_accounts: BTreeMap<String, ServiceAccount>,
    of_users: BTreeMap<String, Mapping>,
    of_groups: BTreeMap<String, Mapping>,
    of_sessions: BTreeMap<String, Mapping>,
    others: Vec<String>,
}

/// Imports the identities, and prints the results.
pub fn run(options: &MinioIamOptions) -> ExitCode {
    let console = Console::new();
    match import(options) {
        Ok(rows) => rows::print(&rows, options.common.shape(), &console),
        Err(why) => console.fail(&why),
    }
}

fn import(options: &MinioIamOptions) -> Result<Vec<Row>, String> {
    let read = archive::read(&options.archive).and_then(Export::read);
    let export = read.map_err(|why| format!("{}: {why}", shown(&options.archive)))?;
    let tree = Tree::open(&options.tree, options.common.dry_run)?;
    tree.take_over(&export.wanted(), options.common.dry_run)
}

fn names<T: DeserializeOwned>(archive: &Archive, name: &str) -> Result<BTreeMap<String, T>, String> {
    let Some(text) = archive.files.get(name) else { return Ok(BTreeMap::new()) };
    let read: Result<Names<T>, _> = serde_json::from_slice(text);
    read.map(|names| names.0)
        .map_err(|e| format!("{name}: it is not what MinIO exports: {}", file::place(&e)))
}

impl Export {
    fn read(archive: Archive) -> Result<Self, String> {
        Ok(Self {
            policies: names(&archive, "policies.json")?,
            users: names(&archive, "users.json")?,
            groups: names(&archive, "groups.json")?,
            service_accounts: names(&archive, "svcaccts.json")?,
            of_users: names(&archive, "user_mappings.json")?,
            of_groups: names(&archive, "group_mappings.json")?,
            of_sessions: names(&archive, "stsuser_mappings.json")?,
            others: archive.others,
        })
    }

    fn wanted(&self) -> Wanted {
        let (keys, left) = self.keys();
        let rows = left.into_iter().chain(self.left()).collect();
        Wanted { policies: self.policies(), groups: self.groups(), users: self.users(), keys, rows }
    }

    fn policies(&self) -> Vec<WantedPolicy> {
        let policy = |(name, theirs): (&String, &Json)| {
            let Translated { document, denies, note } = translate(theirs);
            WantedPolicy { name: name.clone(), document, denies, note }
        };
        self.policies.iter().map(policy).collect()
    }

    fn groups(&self) -> Vec<WantedGroup> {
        let group = |(name, theirs): (&String, &Group)| {
            let policies = self.of_groups.get(name).map(Mapping::names).unwrap_or_default();
            // MinIO decides nothing by the policies of a group that is switched off.
            if theirs.status == "disabled" {
                let note = "it was disabled: without its policies".to_owned();
                return WantedGroup { name: name.clone(), policies: Vec::new(), note };
            }
            WantedGroup { name: name.clone(), policies, note: String::new() }
        };
        self.groups.iter().map(group).collect()
    }

    /// The groups of each user who is in one, each once and in one order.
    fn groups_of_users(&self) -> BTreeMap<&str, Vec<String>> {
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, group) in &self.groups {
            for member in group.members.iter().flatten() {
                let of_user = groups.entry(member).or_default();
                if of_user.last() != Some(name) {
                    of_user.push(name.clone());
                }
            }
        }
        groups
    }

    /// Returns the keys of services that are taken over, and the rows of those that are not.
    fn keys(&self) -> (Vec<WantedKey>, Vec<Row>) {
        let groups = self.groups_of_users();
        let groups_of =
            |name: &str| self.users.contains_key(name).then(|| groups.get(name).cloned().unwrap_or_default());
        let (mut keys, mut left) = (Vec::new(), Vec::new());
        for (name, account) in &self.service_accounts {
            match account.wanted(name, groups_of) {
                Ok(key) => keys.push(key),
                Err(why) => left.push(Row::left(Kind::ServiceAccount, name, &why)),
            }
        }
        (keys, left)
    }

    fn users(&self) -> Vec<WantedUser> {
        let groups = self.groups_of_users();
        let user = |(name, theirs): (&String, &User)| {
            let disabled = theirs.status != "enabled";
            WantedUser {
                name: name.clone(),
                secret: theirs.secret.clone(),
                disabled,
                posix: None,
                built_in: None,
                own: None,
                policies: self.of_users.get(name).map(Mapping::names).unwrap_or_default(),
                groups: groups.get(name.as_str()).cloned().unwrap_or_default(),
                note: if disabled { "disabled, as it was".to_owned() } else { String::new() },
                left: Vec::new(),
            }
        };
        self.users.iter().map(user).collect()
    }

    /// Returns what else is not taken over, and why.
    fn left(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut unknown =
            |mappings: &BTreeMap<String, Mapping>, is_known: &dyn Fn(&str) -> bool, why: &str| {
                for (name, _) in mappings.iter().filter(|(name, _)| !is_known(name)) {
                    rows.push(Row::left(Kind::Mapping, name, why));
                }
            };
        let elsewhere = "the archive has no such user or group: it is one of LDAP or OpenID";
        unknown(&self.of_users, &|name| self.users.contains_key(name), elsewhere);
        unknown(&self.of_groups, &|name| self.groups.contains_key(name), elsewhere);
        unknown(
            &self.of_sessions,
            &|_| false,
            "policies of people who log in by LDAP or OpenID are not imported",
        );
        rows.extend(
            self.others.iter().map(|name| Row::left(Kind::File, name, "no export that is known has it")),
        );
        rows
    }
}
