//! A line of the audit log: its fields, in their order.

use std::net::IpAddr;
use std::sync::Arc;

use iam::{
    AccountId, DecidedBy, DecidingStatement, Explained, KeyKind, Person, PolicySource, PrincipalKind,
    Requester, Session, WebSubject,
};
use s3_types::{UnixAccount, UnixName};

use crate::json_fields::{number, push_address, text, word};
use crate::limits::ACCESS_LOG_LINE_BYTES;
use crate::request_id::RequestId;
use crate::secrets::without_misplaced_secret;

/// Somebody who asks for a session with a name and password of the LDAP directory.
#[derive(Debug)]
pub struct DirectorySubject {
    /// The account of the session.
    pub account: AccountId,
    /// The entry of the LDAP directory whose password was sent ([`Person::entry`]).
    pub entry: Box<str>,
    /// The owner of the password; `None` if it was not right.
    pub person: Option<Arc<Person>>,
}

/// The things that an action of IAM names besides its resource, which is the user, group or role
/// that has them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named<'a> {
    /// The id of an access key that exists.
    pub key: Option<&'a str>,
    /// The ARN of a managed policy that is attached, detached or made a boundary.
    pub policy: Option<&'a str>,
}

/// A line, except for the time.
pub(super) struct Line {
    fields: Vec<u8>,
    /// True if the requester is known. Then a key in the resource is really meant as a key:
    /// otherwise it may be a secret that was put in the wrong place.
    is_signed: bool,
}

impl Line {
    pub fn new(request: RequestId, remote: Option<IpAddr>) -> Self {
        let mut out = Vec::with_capacity(ACCESS_LOG_LINE_BYTES);
        word(&mut out, b",\"request_id\":\"", Some(request.as_str()));
        if let Some(address) = remote {
            out.extend_from_slice(b",\"remote_ip\":\"");
            push_address(&mut out, address);
            out.push(b'"');
        }
        Self { fields: out, is_signed: false }
    }

    pub fn requester(&mut self, requester: &Requester, unix: Option<UnixAccount>) {
        let (out, session) = (&mut self.fields, requester.session());
        match session {
            None => word(out, b",\"kind\":\"", Some("anonymous")),
            Some(session) => push_session(out, session),
        }
        let in_state = || match session?.facts.unix.as_ref()? {
            UnixName::Ids(identity) => Some(identity.account),
            UnixName::Account(_) | UnixName::User(_) => None,
        };
        if let Some(account) = unix.or_else(in_state) {
            number(out, b",\"uid\":", account.uid().into());
            number(out, b",\"gid\":", account.gid().into());
        }
        self.is_signed = session.is_some();
    }

    /// Adds the fields about a person who asks for a session with a token that was verified.
    pub fn web_subject(&mut self, web: &WebSubject) {
        word(&mut self.fields, b",\"kind\":\"", Some("web-identity"));
        push_web(&mut self.fields, web);
        self.is_signed = true;
    }

    /// Tells of whoever asks for a session by a password of the directory: as whom they are logged
    /// in, if the password was right, and of which entry it is.
    pub fn directory_login(&mut self, login: &DirectorySubject) {
        let DirectorySubject { account, entry, person } = login;
        let out = &mut self.fields;
        if let Some(person) = person {
            word(out, b",\"kind\":\"", Some("directory-user"));
            word(out, b",\"account\":\"", Some(account.as_str()));
            text(out, b",\"principal\":\"", person.arn(account).as_bytes());
            text(out, b",\"principal_id\":\"", person.unique_id(account).as_bytes());
            text(out, b",\"session\":\"", person.name.as_bytes());
            self.is_signed = true;
        }
        text(&mut self.fields, b",\"entry\":\"", entry.as_bytes());
    }

    /// Tells of the keys of a request whose signature was not verified.
    pub fn unverified_keys(&mut self, disabled: Option<&str>, presented: Option<&str>) {
        if let Some(id) = disabled {
            text(&mut self.fields, b",\"disabled_key\":\"", id.as_bytes());
        }
        if let Some(id) = presented {
            text(&mut self.fields, b",\"presented_key\":\"", id.as_bytes());
        }
    }

    pub fn outcome(&mut self, operation: Option<&str>, is_allowed: bool) {
        word(&mut self.fields, b",\"operation\":\"", operation);
        word(&mut self.fields, b",\"outcome\":\"", Some(if is_allowed { "allow" } else { "deny" }));
    }

    pub fn permission(&mut self, action: &str, resource: &str) {
        word(&mut self.fields, b",\"action\":\"", Some(action));
        self.resource(Some(resource));
    }

    pub fn resource(&mut self, resource: Option<&str>) {
        let Some(resource) = resource else { return };
        if self.is_signed {
            text(&mut self.fields, b",\"resource\":\"", resource.as_bytes());
        } else {
            let resource = without_misplaced_secret(resource);
            text(&mut self.fields, b",\"resource\":\"", resource.as_bytes());
        }
    }

    /// Adds what an action of IAM names besides its resource.
    pub fn named(&mut self, named: Named<'_>) {
        let Named { key, policy } = named;
        if let Some(key) = key {
            text(&mut self.fields, b",\"target_key\":\"", key.as_bytes());
        }
        if let Some(policy) = policy {
            text(&mut self.fields, b",\"target_policy\":\"", policy.as_bytes());
        }
    }

    pub fn decided_by(&mut self, by: &str) {
        word(&mut self.fields, b",\"decided_by\":\"", Some(by));
    }

    pub fn error(&mut self, code: &str) {
        word(&mut self.fields, b",\"error\":\"", Some(code));
    }

    pub fn explained(&mut self, explained: &Explained) {
        let Explained { by, statements, lacking, .. } = explained;
        self.decided_by(match by {
            DecidedBy::Root => "root",
            DecidedBy::AccountRoot => "account-root",
            DecidedBy::Statement => "statement",
            DecidedBy::NoStatement => "no-statement",
            DecidedBy::UnreadablePolicy => "unreadable-policy",
        });
        let out = &mut self.fields;
        if !statements.is_empty() {
            out.extend_from_slice(b",\"statements\":[");
            for (at, statement) in statements.iter().enumerate() {
                out.extend_from_slice(if at == 0 { b"{" } else { b",{" });
                push_statement(out, statement);
                out.push(b'}');
            }
            out.push(b']');
        }
        if !lacking.is_empty() {
            out.extend_from_slice(b",\"lacking\":[");
            for (at, source) in lacking.iter().enumerate() {
                word(out, if at == 0 { b"\"" } else { b",\"" }, Some(name(*source)));
            }
            out.push(b']');
        }
    }

    pub fn fields(&self) -> &[u8] {
        &self.fields
    }
}

fn push_session(out: &mut Vec<u8>, session: &Session) {
    let principal = &session.principal;
    let is_server_root = session.key_kind == KeyKind::Root;
    let (kind, session_name) = match principal.kind {
        _ if is_server_root => ("root", None),
        PrincipalKind::Root => ("account-root", None),
        PrincipalKind::User => ("user", None),
        // The name of the session is what follows the role's.
        PrincipalKind::Role => ("role", principal.name.split_once('/').map(|(_, name)| name)),
        PrincipalKind::FederatedUser => ("federated-user", Some(&*principal.name)),
        PrincipalKind::DirectoryUser => ("directory-user", Some(&*principal.name)),
    };
    word(out, b",\"kind\":\"", Some(kind));
    // Ids and access keys have nothing to escape.
    word(out, b",\"account\":\"", Some(principal.account.id().as_str()));
    text(out, b",\"principal\":\"", principal.arn.as_bytes());
    if let Some(id) = &principal.unique_id {
        text(out, b",\"principal_id\":\"", id.as_bytes());
    }
    if let Some(issuer) = &principal.issuer {
        text(out, b",\"issuer\":\"", issuer.as_bytes());
    }
    if let Some(name) = session_name {
        text(out, b",\"session\":\"", name.as_bytes());
    }
    if let Some(source) = session.token.as_ref().and_then(|token| token.source.as_deref()) {
        text(out, b",\"source_identity\":\"", source.as_bytes());
    }
    if let Some(web) = session.token.as_ref().and_then(|token| token.web.as_deref()) {
        push_web(out, web);
    }
    word(out, b",\"access_key\":\"", Some(session.credential.access_key.as_str()));
}

fn push_web(out: &mut Vec<u8>, web: &WebSubject) {
    text(out, b",\"provider\":\"", web.provider.as_bytes());
    text(out, b",\"subject\":\"", web.subject.as_bytes());
}

fn push_statement(out: &mut Vec<u8>, statement: &DecidingStatement) {
    let DecidingStatement { source, policy, document, statement, sid } = statement;
    word(out, b"\"source\":\"", Some(name(*source)));
    number(out, b",\"policy_number\":", count(*document));
    if let Some(policy) = policy {
        text(out, b",\"policy\":\"", policy.as_bytes());
    }
    number(out, b",\"statement\":", count(*statement));
    if let Some(sid) = sid {
        text(out, b",\"sid\":\"", sid.as_bytes());
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

const fn name(source: PolicySource) -> &'static str {
    match source {
        PolicySource::Identity => "identity",
        PolicySource::Boundary => "boundary",
        PolicySource::Session => "session",
        PolicySource::Resource => "resource",
    }
}
