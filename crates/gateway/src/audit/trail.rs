use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use iam::{Decision, Explained, Requester, Unidentified, WebSubject};
use s3_types::{Timestamp, UnixAccount};

use super::line::{DirectorySubject, Line, Named};
use super::log::AuditLog;
use crate::peer::Peer;
use crate::request_id::RequestId;

/// The reason why a decision was made without policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPolicy {
    /// The action needs no permission.
    Anybody,
    /// The action is only for the root of the server.
    Administrator,
}

/// The error with which a request is refused, as its line tells it.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'e> {
    /// The code of the answer.
    pub code: &'e str,
    /// True if the file system denied it.
    pub is_of_file_system: bool,
}

impl<'e> Refusal<'e> {
    /// Makes that of an answer that the file system has no part in.
    pub const fn of_server(code: &'e str) -> Self {
        Self { code, is_of_file_system: false }
    }
}

/// True for a text of the form in which ids of keys are made, here and by AWS: no secret has it.
fn is_like_an_id(text: &str) -> bool {
    let rest = text.strip_prefix("AKIA").or_else(|| text.strip_prefix("ASIA"));
    rest.is_some_and(|rest| {
        rest.len() == 16 && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    })
}

/// The lines that one request leaves in the audit log.
#[derive(Debug)]
pub struct Trail {
    log: Arc<AuditLog>,
    request: RequestId,
    remote: Option<IpAddr>,
    /// The name of the operation, once it is known.
    operation: OnceLock<&'static str>,
    /// The uid and gid of the requester on the file system, once they are known.
    unix: OnceLock<UnixAccount>,
    /// The person for whom an OpenID provider vouches, once known. Such a person asks for a session
    /// without a key.
    web: OnceLock<WebSubject>,
    /// The entry of the directory whose password was sent, and its person if the password was
    /// right.
    directory: OnceLock<DirectorySubject>,
    /// The id of the key that the request names, if the key is known and switched off. No signature
    /// was verified.
    disabled_key: OnceLock<Box<str>>,
    /// The id of the key that a request says it is signed with, if the signature was not verified.
    presented_key: OnceLock<Box<str>>,
    /// True once a line says that something was denied.
    has_denial: AtomicBool,
}

impl Trail {
    /// Makes an empty trail for a request.
    pub fn new(log: &Arc<AuditLog>, request: RequestId, peer: Peer) -> Self {
        let (log, has_denial) = (Arc::clone(log), AtomicBool::new(false));
        let (operation, unix) = (OnceLock::new(), OnceLock::new());
        let (web, directory, disabled_key) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (presented_key, remote) = (OnceLock::new(), peer.ip());
        Self {
            log,
            request,
            remote,
            operation,
            unix,
            web,
            directory,
            disabled_key,
            presented_key,
            has_denial,
        }
    }

    /// Sets the name of the operation.
    pub fn set_operation(&self, name: &'static str) {
        // It is known once.
        let _ = self.operation.set(name);
    }

    /// Sets the identity of the requester on the file system.
    pub fn set_unix(&self, account: UnixAccount) {
        // It is known once.
        let _ = self.unix.set(account);
    }

    /// Sets the person for whom an OpenID provider vouches.
    pub fn set_web(&self, subject: WebSubject) {
        // It is known once.
        let _ = self.web.set(subject);
    }

    /// Takes whose password of the directory was sent.
    pub fn set_directory(&self, login: DirectorySubject) {
        // It is known once.
        let _ = self.directory.set(login);
    }

    /// Adds the line of a session that somebody of the directory gets.
    pub fn logged_in(&self) {
        let mut line = self.line(None, true);
        line.decided_by("directory");
        self.add(&line);
    }

    /// Sets the id of a key that is switched off, which the request names as the one that signed
    /// it.
    pub fn set_disabled_key(&self, id: &str) {
        // It is known once.
        let _ = self.disabled_key.set(id.into());
    }

    /// Takes the id of a key with which a request says that it is signed, and that has no session.
    pub fn set_refused_key(&self, id: &str, why: &Unidentified) {
        if matches!(why, Unidentified::Inactive) {
            self.set_disabled_key(id);
        } else {
            self.set_presented_key(id, false);
        }
    }

    /// Takes the id of a key with which a request says that it is signed, if the signature could
    /// not be verified. What is not known and has not the form of an id may be a secret: it is not
    /// told.
    pub fn set_presented_key(&self, id: &str, is_known: bool) {
        if is_known || is_like_an_id(id) {
            // It is known once.
            let _ = self.presented_key.set(id.into());
        }
    }

    /// Adds the line for a decision by policies.
    pub fn decided(&self, requester: &Requester, action: &str, resource: &str, explained: &Explained) {
        self.decided_naming(requester, (action, resource), Named::default(), explained);
    }

    /// Adds the line for a decision by policies about an action of IAM.
    pub fn decided_naming(
        &self,
        requester: &Requester,
        (action, resource): (&str, &str),
        named: Named<'_>,
        explained: &Explained,
    ) {
        let mut line = self.line(Some(requester), explained.decision == Decision::Allow);
        line.permission(action, resource);
        line.named(named);
        line.explained(explained);
        self.add(&line);
    }

    /// Adds the line for a decision without policies.
    pub fn decided_without(
        &self,
        requester: &Requester,
        (action, resource): (&str, &str),
        named: Named<'_>,
        by: NoPolicy,
        is_allowed: bool,
    ) {
        let mut line = self.line(Some(requester), is_allowed);
        line.permission(action, resource);
        line.named(named);
        line.decided_by(match by {
            NoPolicy::Anybody => "anybody",
            NoPolicy::Administrator => "administrator",
        });
        self.add(&line);
    }

    /// Adds the line of a request that was refused, unless one says so already: who asks could not
    /// be verified (`requester` is `None`), or no policy decided. `resource` is what the request
    /// names.
    pub fn refused(&self, requester: Option<&Requester>, resource: Option<&str>, error: Refusal<'_>) {
        if !self.has_denial.load(Relaxed) {
            self.add_refusal(requester, resource, error);
        }
    }

    /// Adds the line of a part of a request that was refused, such as a key of many: no policy
    /// decided, and other parts may have been denied.
    pub fn refused_part(&self, requester: &Requester, resource: Option<&str>, error: Refusal<'_>) {
        self.add_refusal(Some(requester), resource, error);
    }

    fn add_refusal(&self, requester: Option<&Requester>, resource: Option<&str>, error: Refusal<'_>) {
        let mut line = self.line(requester, false);
        line.resource(resource);
        let is_person = self.directory.get().is_some_and(|login| login.person.is_some());
        let is_known = requester.is_some() || self.web.get().is_some() || is_person;
        line.decided_by(match (is_known, error.is_of_file_system) {
            (false, _) => "authentication",
            (true, true) => "file-system",
            (true, false) => "server",
        });
        line.error(error.code);
        self.add(&line);
    }

    fn line(&self, requester: Option<&Requester>, is_allowed: bool) -> Line {
        if !is_allowed {
            self.has_denial.store(true, Relaxed);
        }
        let mut line = Line::new(self.request, self.remote);
        match (self.web.get(), requester) {
            (Some(web), _) => line.web_subject(web),
            (None, Some(requester)) => line.requester(requester, self.unix.get().copied()),
            (None, None) => {
                let (disabled, presented) = (self.disabled_key.get(), self.presented_key.get());
                line.unverified_keys(disabled.map(|id| &**id), presented.map(|id| &**id));
            }
        }
        if let Some(login) = self.directory.get() {
            line.directory_login(login);
        }
        line.outcome(self.operation.get().copied(), is_allowed);
        line
    }

    fn add(&self, line: &Line) {
        self.log.add(Timestamp::now(), line.fields());
    }
}
