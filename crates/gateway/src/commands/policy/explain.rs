//! `slipway policy explain`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ::policy::{
    Action, Documents, Explanation, Facts as _, Finding, Note, Party, PartyKind, Policy, Request, Source,
    Value, Verdict,
};
use clap::Args;
use iam::{AccountId, is_always_absent};
use s3_types::{Timestamp, UnixName};
use serde_json::{Value as Json, json};

use super::files::{PolicyType, compiled, title};
use super::kernel::{self, Asked, Kernel, KernelOptions, Said};
use super::reasons::{Case, limits, reason};
use super::request::{Given, Requester, Target, Values, account, action, condition, requester, target};
use super::tree::{Read, Who};
use crate::agreement;
use crate::commands::{Console, FOUND, OK};
use crate::identities::{Store, StoreOptions};
use crate::state_dir::STATE_DIR;

/// Options of `slipway policy explain`.
#[derive(Debug, Clone, Args)]
pub struct ExplainOptions {
    /// The action of the request, such as s3:GetObject
    #[arg(value_name = "ACTION", value_parser = action)]
    pub action: Action,

    /// The ARN of the resource that the request is about, such as arn:aws:s3:::BUCKET/KEY. Give *
    /// for an action without a resource, such as s3:ListAllMyBuckets
    #[arg(value_name = "RESOURCE", value_parser = target)]
    pub resource: Target,

    /// The requester: the ARN of a user, of the root user of an account, or of a session (of a role
    /// or of a federated user); or `anonymous`
    #[arg(long, value_name = "ARN", value_parser = requester)]
    pub principal: Option<Requester>,

    /// A directory that gateways serve. The policies of the requester, and the policy and owner of
    /// the bucket, are read from it, so that --identity, --boundary, --resource-policy, --issuer
    /// and --bucket-account cannot be given as well. Gateways may be serving it at the same time
    #[arg(long, value_name = "DIR", conflicts_with_all = ["issuer", "identity", "boundary", "resource_policy", "bucket_account"])]
    pub tree: Option<PathBuf>,

    /// The place of the identities, if that is not the tree.
    #[command(flatten)]
    pub store: StoreOptions,

    /// The requester, by name, in place of --principal: an IAM user of the first account of --tree,
    /// which the first start of a gateway created
    #[arg(long, value_name = "NAME", requires = "tree", conflicts_with = "principal")]
    pub user: Option<String>,

    /// If --principal is a session of a role: the ARN of the role, needed only if the role has an
    /// IAM path. If --principal is a federated user: the ARN of the IAM user who requested the
    /// session
    #[arg(long, value_name = "ARN")]
    pub issuer: Option<String>,

    /// A file with a policy of the requester: an inline or managed policy of the user, of one of
    /// the user's groups, or of the role. May be given several times
    #[arg(long, value_name = "FILE")]
    pub identity: Vec<PathBuf>,

    /// A file with the permissions boundary of the requester
    #[arg(long, value_name = "FILE")]
    pub boundary: Option<PathBuf>,

    /// A file with a session policy, which limits the requester's session. May be given several
    /// times
    #[arg(long, value_name = "FILE")]
    pub session: Vec<PathBuf>,

    /// A file with the policy of the bucket. For the action sts:AssumeRole, it is the trust policy
    /// of the role
    #[arg(long, value_name = "FILE")]
    pub resource_policy: Option<PathBuf>,

    /// The id of the account that owns the bucket [default: the requester's account]. With --tree,
    /// the owner is read from the directory
    #[arg(long, value_name = "ID", value_parser = account)]
    pub bucket_account: Option<AccountId>,

    /// The value of a condition key for the request, such as aws:SourceIp=192.0.2.7. May be given
    /// several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = condition)]
    pub condition: Vec<Given>,

    /// The options about the principal's POSIX identity.
    #[command(flatten)]
    pub kernel: KernelOptions,

    /// Print the answer as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The documents that decide, wherever they come from.
struct Loaded {
    by: Requester,
    identity: Arc<[Arc<Policy>]>,
    boundary: Option<Arc<Policy>>,
    session: Vec<Arc<Policy>>,
    resource: Option<Policy>,
    owner: Option<AccountId>,
    is_restricted: bool,
    /// The unique ids of the principal, and of the role of a session.
    ids: [Option<String>; 2],
    /// Values of condition keys besides those that are given and those that follow.
    values: Vec<(String, String)>,
    /// The source of the principal's POSIX identity, and whether names of the system's accounts
    /// count for it.
    unix: (Option<UnixName>, bool),
    /// The reason why the request is refused whatever policies say.
    disabled: Option<String>,
    names: Names,
}

/// The sources of the documents: file names, or names of policies.
#[derive(Default)]
struct Names {
    identity: Vec<String>,
    boundary: String,
    session: Vec<String>,
    resource: String,
}

/// A decision with all that is said of it.
struct Decided {
    principal: String,
    /// The reason why the request is refused whatever policies say, if the principal is disabled.
    disabled: Option<String>,
    verdict: Verdict,
    /// The reason for the verdict of the policies.
    reason: String,
    /// The verdict of the kernel, if it is asked.
    kernel: Option<Kernel>,
    statements: Vec<Found>,
    notes: Vec<String>,
}

/// The part that a statement had in the decision.
struct Found {
    /// The file, or the name of the policy.
    document: String,
    source: &'static str,
    statement: usize,
    sid: Option<String>,
    line: usize,
    finding: String,
    applies: bool,
    decides: bool,
}

/// Decides, and prints why.
pub fn run(options: &ExplainOptions) -> ExitCode {
    let console = Console::new();
    let decided = match decide(options, Timestamp::now()) {
        Ok(decided) => decided,
        Err(message) => return console.fail(&message),
    };
    if options.json {
        console.say(&as_json(options, &decided).to_string());
    } else {
        for line in as_lines(options, &decided) {
            console.say(&line);
        }
    }
    if decided.is_allowed() { OK.into() } else { FOUND.into() }
}

impl Decided {
    /// Returns the verdict of the kernel, if it decides although policies allow the request.
    fn decisive_kernel(&self) -> Option<&Kernel> {
        self.kernel.as_ref().filter(|kernel| self.verdict == Verdict::Allow && kernel.verdict != Said::Allows)
    }

    fn is_allowed(&self) -> bool {
        self.disabled.is_none() && self.verdict == Verdict::Allow && self.decisive_kernel().is_none()
    }

    /// The decision and its reason.
    fn outcome(&self) -> (&'static str, &str) {
        if let Some(why) = &self.disabled {
            return ("refused", why);
        }
        match self.decisive_kernel() {
            None => (decision(self.verdict), self.reason.as_str()),
            Some(kernel) => (by_kernel(kernel.verdict), kernel.sentence.as_str()),
        }
    }
}

fn decide(options: &ExplainOptions, now: Timestamp) -> Result<Decided, String> {
    let ExplainOptions { action, resource, .. } = options;
    resource.fits(*action)?;
    let is_trust = action.service() == "sts" && resource.is_role();
    let loaded = match &options.tree {
        Some(dir) => of_tree(options, dir)?,
        None => of_files(options, is_trust)?,
    };
    let Loaded { by, owner, .. } = &loaded;
    let canonical_id = by.canonical_id();
    let documents = Documents {
        identity: &loaded.identity,
        boundary: loaded.boundary.as_deref(),
        session: (!loaded.session.is_empty()).then_some(&loaded.session[..]),
        resource: loaded.resource.as_ref(),
        owner: owner.as_ref().map(AccountId::as_str),
        is_trust,
        is_restricted: loaded.is_restricted,
    };
    let values = Values::new(by, resource, documents.owner, &options.condition, now)?.with(&loaded.values);
    let [id, issuer_id] = loaded.ids.each_ref().map(Option::as_deref);
    let party = Party { id, issuer_id, ..by.party(&canonical_id) };
    let done_with = resource.resource(*action);
    let request = Request { party, action: *action, resource: done_with, facts: &values };
    let explanation = Explanation::new(&request, &documents);
    let case = Case {
        kind: by.kind,
        is_owners: owner.as_ref().is_none_or(|owner| owner.as_str() == by.account_id()),
        is_trust,
        limits: limits(documents.boundary.is_some(), documents.session.is_some()),
    };
    let is_of_iam = action.service() != "s3";
    let is_clear = matches!(explanation.verdict, Verdict::Allow | Verdict::Deny);
    let decisive: Vec<Note> = explanation.decisive().filter(|_| is_clear).copied().collect();
    let found =
        |note: &Note| found(note, &documents, &values, &loaded.names, (is_of_iam, decisive.contains(note)));
    let kernel = options.tree.as_deref().and_then(|dir| ask_kernel(options, dir, &loaded));
    let is_all = options.tree.is_none() || kernel.is_some() || explanation.verdict != Verdict::Allow;
    let unasked = if is_all {
        None
    } else {
        kernel::unasked(&options.kernel, by.title(), *action, (resource, prefix(options)))
    };
    Ok(Decided {
        principal: by.title().to_owned(),
        verdict: explanation.verdict,
        reason: reason(explanation.verdict, explanation.sums, case),
        kernel,
        statements: explanation.notes.iter().map(found).collect(),
        notes: notes(options).into_iter().chain(unasked).collect(),
        disabled: loaded.disabled.clone(),
    })
}

/// Asks the kernel, about a listing with the prefix that is given.
fn ask_kernel(options: &ExplainOptions, dir: &Path, loaded: &Loaded) -> Option<Kernel> {
    let (unix, is_of_tree) = &loaded.unix;
    let title = loaded.by.title();
    // Of a session with its role.
    let name = title.split_once('/').map_or(title, |(_, name)| name);
    let name = if loaded.by.kind == PartyKind::User { name.rsplit('/').next().unwrap_or(name) } else { name };
    let is_role_session = loaded.by.kind == PartyKind::RoleSession;
    let asked = Asked { name, unix: unix.as_ref(), is_of_tree: *is_of_tree, is_role_session };
    kernel::ask(&options.kernel, dir, &asked, options.action, (&options.resource, prefix(options)))
}

/// Returns the prefix of a listing that is given.
fn prefix(options: &ExplainOptions) -> &str {
    let of_prefix = |one: &&Given| one.key.to_string() == "s3:prefix";
    options.condition.iter().find(of_prefix).map_or("", |given| given.value.as_str())
}

/// Takes who asks and the documents from options and files.
fn of_files(options: &ExplainOptions, is_trust: bool) -> Result<Loaded, String> {
    let mut by = options
        .principal
        .clone()
        .ok_or("--principal is missing; with --tree DIR, also --user NAME says who asks")?;
    if let Some(issuer) = &options.issuer {
        by.set_issuer(issuer)?;
    }
    refuse_own_policies(options, &by)?;
    let owner = options.bucket_account.clone().or_else(|| options.resource.account());
    let shown = |path: &PathBuf| path.to_string_lossy().into_owned();
    let names = Names {
        identity: options.identity.iter().map(shown).collect(),
        boundary: options.boundary.as_ref().map(shown).unwrap_or_default(),
        session: options.session.iter().map(shown).collect(),
        resource: options.resource_policy.as_ref().map(shown).unwrap_or_default(),
    };
    load(options, is_trust, Loaded { owner, names, ..Loaded::of(by) })
}

/// Takes them from a directory, but for the policies of a session.
fn of_tree(options: &ExplainOptions, dir: &Path) -> Result<Loaded, String> {
    let who = match (&options.user, &options.principal) {
        (Some(name), _) => Who::User(name),
        (None, Some(by)) => Who::Principal(by),
        (None, None) => return Err("--principal or --user is missing".to_owned()),
    };
    let store = Store::find(&options.store, |name| std::env::var(name).ok())?;
    if let Err(why) = agreement::check_store(&options.store, &dir.join(STATE_DIR)) {
        return Err(format!("{}: {why}", dir.display()));
    }
    let read = Read::new(dir, store, who, options.action, &options.resource)?;
    refuse_own_policies(options, &read.by)?;
    let session = |path: &PathBuf| compiled(path, PolicyType::Session, "").map(Arc::new);
    let (permissions, names) = (read.permissions.clone(), &read.permissions.names);
    let resource = match options.resource.bucket() {
        Some(bucket) => format!("policy of the bucket {bucket}"),
        None => "trust policy".to_owned(),
    };
    Ok(Loaded {
        names: Names {
            identity: names.identity.iter().map(ToString::to_string).collect(),
            boundary: names.boundary.as_deref().unwrap_or_default().to_owned(),
            session: options.session.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            resource,
        },
        identity: permissions.identity,
        boundary: permissions.boundary,
        session: options.session.iter().map(session).collect::<Result<_, _>>()?,
        resource: read.resource,
        owner: read.owner.or_else(|| options.resource.account()),
        is_restricted: read.is_restricted,
        ids: [read.id, read.issuer_id],
        values: read.values,
        unix: (read.unix, read.is_of_tree),
        disabled: read.disabled,
        ..Loaded::of(read.by)
    })
}

/// Refuses policies of who has none.
fn refuse_own_policies(options: &ExplainOptions, by: &Requester) -> Result<(), String> {
    let has_own = !options.identity.is_empty() || !options.session.is_empty() || options.boundary.is_some();
    if has_own && matches!(by.kind, PartyKind::Anonymous | PartyKind::Root) {
        return Err("the anonymous, and the root of an account, have no policies: leave out --identity, --boundary and \
            --session"
            .to_owned());
    }
    Ok(())
}

impl Loaded {
    /// No documents.
    fn of(by: Requester) -> Self {
        Self {
            by,
            identity: Arc::default(),
            boundary: None,
            session: Vec::new(),
            resource: None,
            owner: None,
            is_restricted: false,
            ids: [None, None],
            values: Vec::new(),
            unix: (None, false),
            disabled: None,
            names: Names::default(),
        }
    }
}

/// Reads the files.
fn load(options: &ExplainOptions, is_trust: bool, loaded: Loaded) -> Result<Loaded, String> {
    let files = options.identity.iter().chain(&options.session);
    let files = files.chain(&options.boundary).chain(&options.resource_policy);
    if files.filter(|path| *path == Path::new("-")).count() > 1 {
        return Err("-: standard input can be read once only".to_owned());
    }
    let bucket = options.resource.bucket();
    let of_resource = match (bucket, is_trust) {
        (_, true) => PolicyType::Trust,
        (Some(_), _) => PolicyType::Resource,
        (None, false) if options.resource_policy.is_some() => {
            return Err(
                "--resource-policy: only buckets, and roles that somebody assumes, have one".to_owned()
            );
        }
        (None, false) => PolicyType::Resource,
    };
    let read = |path: &PathBuf, of| compiled(path, of, bucket.unwrap_or_default());
    let all = |paths: &[PathBuf], of| -> Result<Vec<Arc<Policy>>, String> {
        paths.iter().map(|path| read(path, of).map(Arc::new)).collect()
    };
    let one = |path: &Option<PathBuf>, of| path.as_ref().map(|path| read(path, of)).transpose();
    Ok(Loaded {
        identity: all(&options.identity, PolicyType::Identity)?.into(),
        boundary: one(&options.boundary, PolicyType::Boundary)?.map(Arc::new),
        session: all(&options.session, PolicyType::Session)?,
        resource: one(&options.resource_policy, of_resource)?,
        ..loaded
    })
}

fn found(
    note: &Note,
    documents: &Documents<'_>,
    values: &Values,
    names: &Names,
    (is_of_iam, decides): (bool, bool),
) -> Found {
    let (source, document) = match note.source {
        Source::Identity => ("identity", names.identity.get(note.document)),
        Source::Boundary => ("boundary", Some(&names.boundary)),
        Source::Session => ("session", names.session.get(note.document)),
        Source::Resource => ("resource", Some(&names.resource)),
    };
    let statement = note.statement(documents);
    let mut finding = note.found(documents);
    if let Some(condition) = note.condition(documents)
        && values.value(condition.key()) == Value::Absent
    {
        let key = condition.key();
        finding = if is_always_absent(key, is_of_iam) {
            format!("{finding} (no request to this version has a value of {key})")
        } else {
            format!("{finding} (no value is given: --condition {key}=VALUE)")
        };
    }
    Found {
        document: document.cloned().unwrap_or_default(),
        source,
        statement: note.statement + 1,
        sid: statement.and_then(|statement| statement.sid.as_deref()).map(str::to_owned),
        line: statement.map_or(0, |statement| statement.line),
        finding,
        applies: matches!(note.finding, Finding::Applies(..)),
        decides,
    }
}

/// Returns remarks about what a gateway would do otherwise, and about what was perhaps not meant.
fn notes(options: &ExplainOptions) -> Vec<String> {
    let absent =
        options.condition.iter().filter(|one| is_always_absent(&one.key, options.action.service() != "s3"));
    let note = |one: &Given| {
        let key = &one.key;
        format!(
            "no request to this version has a value of {key}: gateways decide as without --condition {key}=VALUE"
        )
    };
    let mut notes: Vec<String> = absent.map(note).collect();
    if let Target::Object(_, key) = &options.resource
        && key.as_str().contains('*')
    {
        notes.push(format!("the key is {:?}: a * in it stands for no other keys", key.as_str()));
    }
    notes
}

const fn decision(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allowed",
        Verdict::Deny => "denied",
        Verdict::NoGrant => "not allowed",
        Verdict::NeedsTags => "not decided",
    }
}

/// The decision where policies allow it and the kernel does not.
const fn by_kernel(said: Said) -> &'static str {
    match said {
        Said::Allows => "allowed",
        Said::Refuses => "refused by the kernel",
        Said::Nobody => "refused",
        Said::Unknown => "not decided",
    }
}

fn as_lines(options: &ExplainOptions, decided: &Decided) -> Vec<String> {
    let (outcome, why) = decided.outcome();
    let mut lines = vec![format!("{outcome}: {why}")];
    if decided.disabled.is_some() || decided.decisive_kernel().is_some() {
        lines.push(format!("policies: {}: {}", decision(decided.verdict), decided.reason));
    }
    let mut statements: Vec<&Found> = decided.statements.iter().collect();
    // What decided comes first, then what else applies.
    statements.sort_by_key(|found| (!found.decides, !found.applies));
    for Found { document, statement, sid, line, finding, .. } in statements {
        let sid = sid.as_ref().map(|sid| format!(" ({sid})")).unwrap_or_default();
        lines.push(format!(
            "{}: line {line}: statement {statement}{sid} {finding}",
            title(Path::new(document))
        ));
    }
    if decided.statements.is_empty() {
        lines.push(match (&options.tree, options.resource.bucket()) {
            (None, _) => "no policies were given".to_owned(),
            (Some(_), None) => format!("{} has no policies", decided.principal),
            (Some(_), Some(bucket)) => {
                format!("{} has no policies, and the bucket {bucket} has none", decided.principal)
            }
        });
    }
    if let Some(kernel) = decided.kernel.as_ref().filter(|_| decided.decisive_kernel().is_none()) {
        let refuses = if kernel.verdict == Said::Refuses { "refuses it as well: " } else { "" };
        lines.push(format!("kernel: {refuses}{}", kernel.sentence));
    }
    lines.extend(decided.notes.iter().map(|note| format!("note: {note}")));
    lines
}

fn as_json(options: &ExplainOptions, decided: &Decided) -> Json {
    let document_key = if options.tree.is_some() { "policy" } else { "file" };
    let statement = |found: &Found| {
        json!({
            document_key: found.document,
            "source": found.source,
            "statement": found.statement,
            "sid": found.sid,
            "line": found.line,
            "finding": found.finding,
            "applies": found.applies,
            "decides": found.decides,
        })
    };
    let (outcome, why) = decided.outcome();
    json!({
        "decision": outcome,
        "reason": why,
        "policies": { "decision": decision(decided.verdict), "reason": decided.reason },
        "kernel": decided.kernel.as_ref().map(Kernel::as_json),
        "principal": decided.principal,
        "action": options.action.to_string(),
        "resource": options.resource.to_string(),
        "statements": decided.statements.iter().map(statement).collect::<Vec<_>>(),
        "notes": decided.notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READS: &str = r#"{"Version":"2012-10-17","Statement":[
        {"Sid":"Reads","Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::lab/*"},
        {"Effect":"Deny","Action":"s3:*","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}}]}"#;

    fn options(file: &Path, given: &[&str]) -> ExplainOptions {
        ExplainOptions {
            action: action("s3:GetObject").unwrap(),
            resource: target("arn:aws:s3:::lab/x").unwrap(),
            principal: Some(requester("arn:aws:iam::111122223333:user/ann").unwrap()),
            tree: None,
            store: StoreOptions::default(),
            user: None,
            issuer: None,
            identity: vec![file.to_owned()],
            boundary: None,
            session: Vec::new(),
            resource_policy: None,
            bucket_account: None,
            condition: given.iter().map(|text| condition(text).unwrap()).collect(),
            kernel: KernelOptions::default(),
            json: false,
        }
    }

    #[test]
    fn what_decides_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ann.json");
        std::fs::write(&file, READS).unwrap();
        let name = file.display();
        let decide = |given: &[&str]| {
            let options = options(&file, given);
            let decided = decide(&options, Timestamp::UNIX_EPOCH).unwrap();
            (as_lines(&options, &decided), as_json(&options, &decided))
        };
        let (lines, json) = decide(&[]);
        assert_eq!(
            lines,
            [
                "allowed: the principal's own policies allow it".to_owned(),
                format!("{name}: line 2: statement 1 (Reads) allows it"),
                format!(
                    "{name}: line 3: statement 2 does not apply: IpAddress aws:SourceIp does not hold (no value is \
                     given: --condition aws:SourceIp=VALUE)"
                ),
            ]
        );
        assert_eq!((&json["decision"], &json["resource"]), (&"allowed".into(), &"arn:aws:s3:::lab/x".into()));
        let (lines, json) = decide(&["aws:SourceIp=192.0.2.7", "s3:object-lock-event-hold=ON"]);
        assert_eq!(
            lines[..3],
            [
                "denied: a statement denies it, which counts more than all that allow it".to_owned(),
                format!("{name}: line 3: statement 2 denies it"),
                format!("{name}: line 2: statement 1 (Reads) allows it"),
            ]
        );
        assert!(
            lines[3].starts_with("note: no request to this version has a value of s3:object-lock-event-hold")
        );
        assert_eq!(json["statements"][1]["decides"], true);
    }
}
