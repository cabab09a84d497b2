//! The kernel's half of `slipway policy explain`: what it would refuse to whom the principal is on
//! the file system, if a gateway with `--impersonate` made the file calls (decision 0071).

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use ::policy::Action;
use backend_posix::tools::{Deed, Entry, KernelAnswer, Lack, Refusal, ask_kernel};
use clap::Args;
use iam::model::Posix;
use kernel_calls::accounts::{account_of, name_of_group, name_of_user};
use kernel_calls::acting::Identity;
use kernel_calls::privileges;
use rustix::fs::FileType;
use s3_types::{BucketName, UnixIdentity, UnixName};
use serde_json::{Value as Json, json};

use super::request::Target;
use crate::text::visible;
use crate::unix_identities::{Rules, identity_of};
use crate::values::whole;

/// Options about whom the principal is on the file system.
#[derive(Debug, Clone, Default, Args)]
pub struct KernelOptions {
    /// The identity that the requester has on the file system: UID:GID, UID:GID:GROUP,GROUP... or
    /// the name of a system user. It replaces the uid and gid that are stored in --tree. Some
    /// requesters have none there, such as the root user of an account, anonymous requesters, and
    /// sessions of some roles
    #[arg(long, value_name = "IDENTITY", value_parser = posix, requires = "tree", conflicts_with = "policies_alone")]
    pub posix: Option<UnixName>,

    /// Assume that gateways run with their option posix-names: an IAM user of the first account
    /// without a stored uid and gid acts on the file system as the system user of the same name
    #[arg(long, requires = "tree", conflicts_with = "policies_alone")]
    pub posix_names: bool,

    /// The lowest uid that a request may use on the file system. Give the same value as to `slipway
    /// serve`
    #[arg(long, value_name = "UID", default_value = "1000", value_parser = whole::<u32, 1, 4_294_967_294>)]
    pub uid_min: u32,

    /// Assume that gateways run with their option impersonate: a requester without a known uid and
    /// gid cannot access any file. With neither this option nor --policies-alone, file permissions
    /// are considered only if the requester's uid and gid are known
    #[arg(long, requires = "tree", conflicts_with = "policies_alone")]
    pub impersonate: bool,

    /// Consider only policies, not file permissions: the right answer for gateways that run without
    /// their option impersonate
    #[arg(long)]
    pub policies_alone: bool,
}

fn posix(text: &str) -> Result<UnixName, &'static str> {
    text.parse().map(|posix: Posix| posix.unix_name())
}

/// Somebody whom the kernel is asked about.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The name for people.
    pub name: &'a str,
    /// The source of the principal's POSIX identity.
    pub unix: Option<&'a UnixName>,
    /// True for a user of the account that owns the directory, whose names may count.
    pub is_of_tree: bool,
    /// True for a session of a role, which without a POSIX identity of the role has that of the
    /// user who assumed it.
    pub is_role_session: bool,
}

/// The kernel's answer about a request.
#[derive(Debug)]
pub struct Kernel {
    /// The verdict.
    pub verdict: Said,
    /// The reason, as a sentence.
    pub sentence: String,
    /// The identity that it was asked for.
    identity: Option<Arc<UnixIdentity>>,
    refusal: Option<Refusal>,
    note: Option<&'static str>,
}

/// The kernel's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It allows the request.
    Allows,
    /// It refuses it.
    Refuses,
    /// The gateway refuses it, since the requester is nobody on the file system.
    Nobody,
    /// It could not be asked.
    Unknown,
}

impl Said {
    /// The word in JSON.
    const fn word(self) -> &'static str {
        match self {
            Self::Allows => "allows it",
            Self::Refuses => "refuses it",
            Self::Nobody => "not asked",
            Self::Unknown => "not known",
        }
    }
}

/// Asks the kernel. `None` if gateways do not ask it for this action, or the principal is nobody on
/// the file system as far as is known.
pub fn ask(
    options: &KernelOptions,
    dir: &Path,
    asked: &Asked<'_>,
    action: Action,
    (target, prefix): (&Target, &str),
) -> Option<Kernel> {
    let need = need_of(action, target, prefix).filter(|_| !options.policies_alone)?;
    let identity = match identity(options, asked) {
        Err(why) => return Some(Kernel::bare(Said::Nobody, why)),
        Ok(Some(identity)) => identity,
        Ok(None) if options.impersonate && asked.is_role_session => {
            let why = format!(
                "whom {} is on the file system is not known: its role has no POSIX identity, so that it has that of \
                 the user who assumed the role: give it by --posix",
                asked.name
            );
            return Some(Kernel::bare(Said::Unknown, why));
        }
        Ok(None) if options.impersonate => {
            let why = format!(
                "{} has no POSIX identity, and reaches no file where gateways have --impersonate",
                asked.name
            );
            return Some(Kernel::bare(Said::Nobody, why));
        }
        Ok(None) => return None,
    };
    let name = visible(asked.name, false).into_owned();
    let by = Named { name: &name, identity: &identity };
    let (bucket, deed) = match need {
        Need::Nothing(why) => return Some(Kernel::allowed(&by, Some(why))),
        Need::Deed(bucket, deed) => (bucket, deed),
    };
    if let Err(why) = may_ask(&identity) {
        let sentence = format!("what the kernel says of it is not known: {why}");
        return Some(Kernel { identity: Some(identity), ..Kernel::bare(Said::Unknown, sentence) });
    }
    Some(match ask_kernel(dir, &bucket, &identity, &deed) {
        Ok(KernelAnswer::Allowed(note)) => Kernel::allowed(&by, note),
        Ok(KernelAnswer::Refused(refusal)) => Kernel::refused(&by, refusal),
        Err(why) => {
            let sentence = format!("what the kernel says of it is not known: {why}");
            Kernel { identity: Some(identity), ..Kernel::bare(Said::Unknown, sentence) }
        }
    })
}

/// Returns a sentence for an action that policies allow, and about which [`ask`] has no answer: for
/// gateways with `--impersonate` that is not all. `None` if the kernel has no part in the action,
/// or is not to be asked.
pub fn unasked(
    options: &KernelOptions,
    name: &str,
    action: Action,
    (target, prefix): (&Target, &str),
) -> Option<String> {
    let need = need_of(action, target, prefix).filter(|_| !options.policies_alone)?;
    matches!(need, Need::Deed(..)).then(|| {
        format!(
            "this is what policies say. Where gateways have --impersonate, the kernel decides after them, and whom {} is \
             on the file system is not known here: give --impersonate or --posix; or --policies-alone, for gateways without",
            visible(name, false)
        )
    })
}

/// Returns the POSIX identity of the principal; an error if it is one that no request may have.
fn identity(options: &KernelOptions, asked: &Asked<'_>) -> Result<Option<Arc<UnixIdentity>>, String> {
    let Asked { name, unix, is_of_tree, .. } = *asked;
    let identity = match options.posix.as_ref().or(unix) {
        None => return Ok(None),
        Some(UnixName::Ids(identity)) => Arc::clone(identity),
        Some(UnixName::User(_)) if !(options.posix_names && is_of_tree) => return Ok(None),
        Some(UnixName::Account(account) | UnixName::User(account)) => {
            let found = account_of(account);
            let found = found.map_err(|e| format!("the system does not say who {account:?} is: {e}"))?;
            let found = found.as_ref().and_then(identity_of);
            found.ok_or_else(|| {
                format!("{name} is nobody on the file system: it has no account {account:?}")
            })?
        }
    };
    let rules = Rules { impersonate: true, posix_names: options.posix_names, minimum_uid: options.uid_min };
    match rules.refusal(identity.account) {
        None => Ok(Some(identity)),
        Some(why) => Err(format!("{name} cannot be {} on the file system: {why}", identity.account)),
    }
}

fn may_ask(identity: &UnixIdentity) -> Result<(), String> {
    let (uid, gid) = (identity.account.uid(), identity.account.gid());
    privileges::can_act(Identity { uid, gid, groups: &[] }).map_err(|lack| {
        format!(
            "this process cannot ask it as another user: {lack}; run the command as the gateway runs, as root"
        )
    })
}

/// The permissions of files that a gateway's calls need.
enum Need {
    Deed(BucketName, Deed),
    /// Nothing, and why.
    Nothing(&'static str),
}

/// Returns the permissions of files that an action needs; `None` for those that make no file calls.
fn need_of(action: Action, target: &Target, prefix: &str) -> Option<Need> {
    const DOCUMENTS: &str = "policies of buckets are the gateway's own files";
    let name = action.to_string();
    let name = name.strip_prefix("s3:")?;
    let bucket = match target {
        Target::Bucket(bucket) | Target::Object(bucket, _) => bucket.clone(),
        Target::Nothing | Target::Other(_) => {
            return (name == "ListAllMyBuckets")
                .then_some(Need::Nothing("buckets that it may not search are left out of the list"));
        }
    };
    let deed = match (name, target) {
        ("CreateBucket", _) => {
            return Some(Need::Nothing("the gateway makes the directory, and gives it to the requester"));
        }
        ("GetBucketPolicy" | "PutBucketPolicy" | "DeleteBucketPolicy" | "GetBucketPolicyStatus", _) => {
            return Some(Need::Nothing(DOCUMENTS));
        }
        (
            "GetObject"
            | "GetObjectVersion"
            | "GetObjectAttributes"
            | "GetObjectVersionAttributes"
            | "GetObjectAcl"
            | "GetObjectVersionAcl"
            | "GetObjectTagging"
            | "GetObjectVersionTagging",
            Target::Object(_, key),
        ) => Deed::Read(key.clone()),
        ("PutObject", Target::Object(_, key)) => Deed::Write(key.clone()),
        ("DeleteObject" | "DeleteObjectVersion", Target::Object(_, key)) => Deed::Delete(key.clone()),
        ("AbortMultipartUpload" | "ListMultipartUploadParts" | "ListBucketMultipartUploads", _) => {
            Deed::Uploads
        }
        ("ListBucket" | "ListBucketVersions", _) => Deed::List(prefix.to_owned()),
        ("DeleteBucket", _) => Deed::DeleteBucket,
        (name, Target::Bucket(_)) if name.starts_with("Get") => Deed::Look,
        _ => return None,
    };
    Some(Need::Deed(bucket, deed))
}

/// Somebody by name, with the ids.
struct Named<'a> {
    name: &'a str,
    identity: &'a Arc<UnixIdentity>,
}

impl Named<'_> {
    /// The name with all ids.
    fn in_full(&self) -> String {
        let UnixIdentity { account, groups } = &**self.identity;
        let mut text = format!("{} (uid {}, gid {}", self.name, account.uid(), account.gid());
        if !groups.is_empty() {
            let groups: Vec<_> = groups.iter().map(u32::to_string).collect();
            let _ = write!(text, ", groups {}", groups.join(", "));
        }
        text + ")"
    }

    fn in_short(&self) -> String {
        format!("{} (uid {})", self.name, self.identity.account.uid())
    }
}

impl Kernel {
    fn bare(verdict: Said, sentence: String) -> Self {
        Self { verdict, sentence, identity: None, refusal: None, note: None }
    }

    fn allowed(by: &Named<'_>, note: Option<&'static str>) -> Self {
        let and = note.map(|note| format!("; {note}")).unwrap_or_default();
        let sentence = format!("the kernel allows it to {}{and}", by.in_full());
        let identity = Some(Arc::clone(by.identity));
        Self { identity, note, ..Self::bare(Said::Allows, sentence) }
    }

    fn refused(by: &Named<'_>, refusal: Refusal) -> Self {
        let shown = shown(&refusal.entry);
        let who = by.in_short();
        let sentence = match &refusal.lack {
            Lack::Search => format!("{shown} gives {who} no search permission"),
            Lack::Read => format!("{shown} gives {who} no read permission"),
            Lack::Write => format!("{shown} gives {who} no write permission"),
            Lack::Owner(directory) => format!(
                "{shown} is replaced or removed only by its owner or that of its directory, {}, which is sticky; \
                 {who} is neither",
                self::shown(directory)
            ),
            Lack::OwnRecord => {
                format!("{shown} is sticky, so that only its owner makes an object of it; {who} is not")
            }
            Lack::DefaultList(rights) => format!(
                "{shown} has a default access list that gives new directories the rights {} for their owner, so that \
                 {who} could not use those that the key needs",
                bits_of(u32::from(*rights), ('x', '-'))
            ),
            Lack::Unchangeable => {
                format!("{shown} is immutable or append-only, for {who} as for everybody")
            }
        };
        let identity = Some(Arc::clone(by.identity));
        Self { identity, refusal: Some(refusal), ..Self::bare(Said::Refuses, sentence) }
    }

    /// Returns the answer as JSON.
    pub fn as_json(&self) -> Json {
        let identity = self.identity.as_deref().map(|UnixIdentity { account, groups }| {
            json!({ "uid": account.uid(), "gid": account.gid(), "groups": groups })
        });
        let refusal = self.refusal.as_ref().map(|Refusal { entry, lack }| {
            json!({
                "path": entry.path.to_string_lossy(),
                "mode": mode_of(entry),
                "uid": entry.uid,
                "gid": entry.gid,
                "access_list": entry.has_access_list,
                "lacks": lack_of(lack),
            })
        });
        json!({
            "verdict": self.verdict.word(),
            "reason": self.sentence,
            "identity": identity,
            "refusal": refusal,
            "note": self.note,
        })
    }
}

const fn lack_of(lack: &Lack) -> &'static str {
    match lack {
        Lack::Search => "search",
        Lack::Read => "read",
        Lack::Write => "write",
        Lack::Owner(_) | Lack::OwnRecord => "ownership",
        Lack::DefaultList(_) => "default access list",
        Lack::Unchangeable => "a changeable file",
    }
}

/// A path with mode and owners, as `ls -l` shows them.
fn shown(entry: &Entry) -> String {
    let user = name_of_user(entry.uid).unwrap_or_else(|| entry.uid.to_string());
    let group = name_of_group(entry.gid).unwrap_or_else(|| entry.gid.to_string());
    let path = entry.path.to_string_lossy();
    format!("{} ({} {user}:{group})", visible(&path, false), mode_of(entry))
}

/// Three rights of a mode, the last of which has one of two letters.
fn bits_of(bits: u32, (set, unset): (char, char)) -> String {
    let right = |bit, set, unset| if bits & bit == 0 { unset } else { set };
    [right(4, 'r', '-'), right(2, 'w', '-'), right(1, set, unset)].into_iter().collect()
}

/// Type and mode as `ls -l` shows them, with a `+` for an access list.
fn mode_of(entry: &Entry) -> String {
    let mode = entry.mode;
    let kind = match FileType::from_raw_mode(mode) {
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        _ => '-',
    };
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let last = if mode & special == 0 { ('x', '-') } else { (letter, letter.to_ascii_uppercase()) };
        text += &bits_of(mode >> shift, last);
    }
    if entry.has_access_list {
        text.push('+');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::request::{action, target};
    use super::*;

    fn entry(mode: u32, has_access_list: bool) -> Entry {
        Entry { path: "/srv/lab/home".into(), mode, uid: 0, gid: 4_000_000_123, has_access_list }
    }

    fn options() -> KernelOptions {
        KernelOptions { uid_min: 1000, ..KernelOptions::default() }
    }

    #[test]
    fn modes_are_shown_as_ls_does() {
        for (mode, list, text) in [
            (0o040_750, false, "drwxr-x---"),
            (0o042_770, true, "drwxrws---+"),
            (0o041_777, false, "drwxrwxrwt"),
            (0o041_776, false, "drwxrwxrwT"),
            (0o106_640, false, "-rwSr-S---"),
            (0o120_777, false, "lrwxrwxrwx"),
        ] {
            assert_eq!(mode_of(&entry(mode, list)), text, "{mode:o}");
        }
    }

    #[test]
    fn a_refusal_names_path_mode_owners_and_who_asks() {
        let identity = posix("1001:100:27,44").unwrap();
        let UnixName::Ids(identity) = identity else { panic!() };
        let by = Named { name: "ann", identity: &identity };
        let kernel = Kernel::refused(&by, Refusal { entry: entry(0o040_750, false), lack: Lack::Search });
        assert_eq!(
            kernel.sentence,
            "/srv/lab/home (drwxr-x--- root:4000000123) gives ann (uid 1001) no search permission"
        );
        let json = kernel.as_json();
        assert_eq!(
            (&json["refusal"]["lacks"], &json["identity"]["groups"][1]),
            (&"search".into(), &44.into())
        );
        assert_eq!(
            Kernel::allowed(&by, Some("so it is")).sentence,
            "the kernel allows it to ann (uid 1001, gid 100, groups 27, 44); so it is"
        );
    }

    #[test]
    fn accounts_are_read() {
        assert!(matches!(posix("ann"), Ok(UnixName::Account(_))));
        assert!(matches!(posix("1001:100"), Ok(UnixName::Ids(_))));
        for wrong in ["", "1000", "0:1", "1:0", "1:1:", "1:1:x", "1:x", "a:b", "root", "1:1:1:1"] {
            assert!(posix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_is_nobody_is_told_apart() {
        let ask = |options: &KernelOptions, unix: Option<&UnixName>| {
            let asked = Asked { name: "ann", unix, is_of_tree: true, is_role_session: false };
            let target = target("arn:aws:s3:::lab").unwrap();
            let found =
                ask(options, Path::new("/no/tree"), &asked, action("s3:ListBucket").unwrap(), (&target, ""));
            found.map(|kernel| (kernel.verdict, kernel.sentence))
        };
        let with = KernelOptions { impersonate: true, ..options() };
        assert_eq!(ask(&options(), None), None);
        assert_eq!(ask(&with, None).unwrap().0, Said::Nobody);
        let user = UnixName::User("no-such-account".into());
        assert_eq!(ask(&options(), Some(&user)), None);
        let names = KernelOptions { posix_names: true, ..options() };
        let (said, why) = ask(&names, Some(&user)).unwrap();
        assert!(said == Said::Nobody && why.contains("no account \"no-such-account\""), "{why}");
        let low = posix("12:100").unwrap();
        let (said, why) = ask(&options(), Some(&low)).unwrap();
        assert!(said == Said::Nobody && why.contains("below --uid-min"), "{why}");
        assert_eq!(ask(&KernelOptions { policies_alone: true, ..options() }, Some(&low)), None);
    }

    #[test]
    fn actions_need_what_gateways_ask_for() {
        let need = |name: &str, on: &str| match need_of(action(name).unwrap(), &target(on).unwrap(), "p/") {
            None => "none".to_owned(),
            Some(Need::Nothing(_)) => "nothing".to_owned(),
            Some(Need::Deed(_, deed)) => format!("{deed:?}"),
        };
        let (bucket, object) = ("arn:aws:s3:::lab", "arn:aws:s3:::lab/k");
        assert_eq!(need("s3:ListBucket", bucket), "List(\"p/\")");
        assert_eq!(need("s3:GetBucketLocation", bucket), "Look");
        assert_eq!(need("s3:DeleteBucket", bucket), "DeleteBucket");
        assert!(need("s3:GetObject", object).starts_with("Read("));
        assert!(need("s3:PutObject", object).starts_with("Write("));
        assert!(need("s3:DeleteObject", object).starts_with("Delete("));
        assert_eq!(need("s3:AbortMultipartUpload", object), "Uploads");
        for nothing in ["s3:CreateBucket", "s3:GetBucketPolicy"] {
            assert_eq!(need(nothing, bucket), "nothing");
        }
        assert_eq!(need("s3:ListAllMyBuckets", "*"), "nothing");
        assert_eq!(need("iam:GetUser", "*"), "none");
    }
}
