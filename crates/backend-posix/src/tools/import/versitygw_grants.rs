//! Reads the owners and access lists that Versity S3 Gateway noted of buckets.

use std::path::Path;

use backend::Result;
use rustix::fd::AsFd as _;
use rustix::fs::{CWD, Mode};
use s3_types::BucketName;
use serde::Deserialize;

use crate::base::options::Durability;
use crate::error::Op as _;
use crate::facts::versitygw::Source;
use crate::fs::resolve::DIRECTORY;
use crate::tools::opening::{for_each_bucket, open};

/// The permission that a grant of an access list gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKind {
    /// Everything; the owner has it, too.
    All,
    /// To list, and to read objects.
    Read,
    /// To write and delete objects.
    Write,
    /// To read or write the access list, for which there is no right here.
    AccessList,
}

/// A grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The access key of whoever has it; `None` for everybody.
    pub to: Option<String>,
    /// The permission that it gives.
    pub kind: GrantKind,
}

/// A bucket with what Versity S3 Gateway noted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketGrants {
    /// The bucket.
    pub bucket: BucketName,
    /// The grants, or why they are not known.
    pub grants: Result<Vec<Grant>, String>,
    /// True if it had a bucket policy, which then decided alone.
    pub has_policy: bool,
}

/// The access list, as Go writes a structure without names of its own.
#[derive(Deserialize)]
struct Acl {
    #[serde(rename = "Owner")]
    owner: String,
    #[serde(rename = "Grantees", default)]
    grantees: Option<Vec<Grantee>>,
}

#[derive(Deserialize)]
struct Grantee {
    #[serde(rename = "Permission")]
    permission: String,
    #[serde(rename = "Access")]
    access: String,
    #[serde(rename = "Type")]
    kind: String,
}

fn grants(acl: &[u8]) -> Result<Vec<Grant>, String> {
    // The attribute is whoever's who may write the directory: its text is not repeated.
    let broken = |e: serde_json::Error| format!("line {}, column {}", e.line(), e.column());
    let acl: Acl = serde_json::from_slice(acl).map_err(broken)?;
    let owner = Grant { to: Some(acl.owner), kind: GrantKind::All };
    let others = acl.grantees.unwrap_or_default().into_iter().map(|grantee| {
        let kind = match grantee.permission.as_str() {
            "FULL_CONTROL" => GrantKind::All,
            "READ" => GrantKind::Read,
            "WRITE" => GrantKind::Write,
            _ => GrantKind::AccessList,
        };
        Grant { to: (grantee.kind != "Group").then_some(grantee.access), kind }
    });
    let mut all = vec![owner];
    for grant in others {
        if !all.contains(&grant) {
            all.push(grant);
        }
    }
    Ok(all)
}

/// Returns the buckets of the tree at `root` with the grants that Versity S3 Gateway noted, in
/// their attributes or in the directory `sidecar`. Those without a note are left out. Nothing is
/// changed.
pub fn grants_by_versitygw(root: &Path, sidecar: Option<&Path>) -> Result<Vec<BucketGrants>, String> {
    let store = open(root, true, Durability::None)?;
    let sidecar = sidecar.map(|path| {
        let opened = rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty());
        opened.map_err(|e| format!("{}: {e}", path.display()))
    });
    let sidecar = sidecar.transpose()?;
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    let work = |bucket: &BucketName, _: &Path| {
        let directory = store.bucket(bucket)?;
        let source = match &sidecar {
            Some(sidecar) => Source::sidecar(sidecar, bucket.as_str()).op("open a sidecar")?,
            None => Some(Source::File(directory.fd.as_fd())),
        };
        let Some(source) = source else { return Ok(()) };
        let Some(acl) = source.access_list().op("read attributes")? else { return Ok(()) };
        let has_policy = source.names().op("read attributes")?.iter().any(|name| name == "policy");
        found.push(BucketGrants { bucket: bucket.clone(), grants: grants(&acl), has_policy });
        Ok(())
    };
    for_each_bucket(&store, root, work, |path, error| failed.push(format!("{}: {error}", path.display())))?;
    match failed.into_iter().next() {
        None => Ok(found),
        Some(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_of_an_access_list() {
        let acl = br#"{"Owner":"ann","Grantees":[
            {"Permission":"FULL_CONTROL","Access":"ann","Type":"CanonicalUser"},
            {"Permission":"READ","Access":"bob","Type":"CanonicalUser"},
            {"Permission":"WRITE_ACP","Access":"bob","Type":"CanonicalUser"},
            {"Permission":"READ","Access":"all-users","Type":"Group"}]}"#;
        let of = |to: Option<&str>, kind| Grant { to: to.map(str::to_owned), kind };
        let expected = vec![
            of(Some("ann"), GrantKind::All),
            of(Some("bob"), GrantKind::Read),
            of(Some("bob"), GrantKind::AccessList),
            of(None, GrantKind::Read),
        ];
        assert_eq!(grants(acl), Ok(expected));
        let alone = grants(br#"{"Owner":"ann","Grantees":null}"#);
        assert_eq!(alone, Ok(vec![of(Some("ann"), GrantKind::All)]));
        assert_eq!(grants(b"{\"Owner\":7}"), Err("line 1, column 10".to_owned()));
    }
}
