//! AssumeRoleWithLDAPIdentity, MinIO's action: sessions for those who know their password of the
//! directory (docs/decisions/0067-people-of-an-ldap-directory.md). Nobody signs for it.

use std::sync::Arc;

use iam::{AccountId, Claims, Directory as _, LoginError, Person, SecretText, SessionKind, Who};
use iam_wire::api::{self, AssumeRoleWithLDAPIdentityResult};
use iam_wire::{Action, Form, Output as _, QueryCode, QueryError, parse};
use zeroize::Zeroizing;

use super::error;
use super::session::{ROLE_SECONDS, credentials, session_policy};
use crate::audit::DirectorySubject;
use crate::gateway::Gateway;
use crate::request::RequestContext;

/// A request for a session, from a client that has the password.
pub(super) struct DirectoryLogin<'a> {
    /// The gateway.
    pub gateway: &'a Gateway,
    /// The account of the tree, whose groups name groups of the directory.
    pub account: &'a AccountId,
    /// The facts about the request.
    pub cx: &'a RequestContext,
}

fn denied(message: &'static str, why: LoginError) -> QueryError {
    QueryError::new(QueryCode::AccessDenied, message).caused_by(why)
}

/// Makes the error for a failed login. A wrong name and a wrong password give the same sentence, so
/// that clients do not learn which entries exist. It does not hide how long the directory took.
fn refused(why: LoginError) -> QueryError {
    let message = "The name or the password is wrong, or wrong passwords came too often.";
    match why {
        LoginError::Refused(_) | LoginError::TooOften(_) => denied(message, why),
        LoginError::Unusable(_, sentence) => denied(sentence, why),
        LoginError::Unavailable(_) => {
            let message = "The directory cannot be asked at the moment.";
            QueryError::new(QueryCode::ServiceUnavailable, message).caused_by(why)
        }
    }
}

impl DirectoryLogin<'_> {
    /// Performs the action: lets the directory check the password, and issues a session.
    pub async fn perform(&self, form: &Form<'_>) -> Result<String, QueryError> {
        let input: api::AssumeRoleWithLDAPIdentity<'_> = parse(form)?;
        let Some(ldap) = &self.gateway.ldap else {
            return Err(QueryError::action_not_implemented(Action::AssumeRoleWithLDAPIdentity.info().name));
        };
        // Before the password is sent anywhere.
        let policy = session_policy(input.policy)?;
        let state = self.gateway.registry.fresh_or_look().await.map_err(error::unavailable)?;
        let account = state.account(self.account).filter(|account| !account.document().disabled);
        let account = account.ok_or_else(|| {
            QueryError::new(QueryCode::ServiceUnavailable, "The account cannot be used at the moment.")
        })?;
        let password = SecretText::new(Zeroizing::new(input.ldap_password.expose().to_owned()));
        let person = ldap.log_in(input.ldap_user_name, &password).await.map_err(|why| {
            if let Some(entry) = why.entry() {
                self.note(entry, None);
            }
            refused(why)
        })?;
        self.note(&person.entry, Some(&person));
        if !account.knows_a_group(&person.groups) {
            let message = "No group of this server names a group of the directory that you are in.";
            return Err(QueryError::new(QueryCode::AccessDenied, message));
        }
        let mut claims = self.claims(&person, input.duration_seconds.unwrap_or(ROLE_SECONDS));
        claims.policy = policy;
        let issued = self.gateway.registry.issue(&claims).map_err(error::of_iam)?;
        if let Some(trail) = &self.cx.trail {
            trail.logged_in();
        }
        let output = AssumeRoleWithLDAPIdentityResult { credentials: credentials(&issued, &claims) };
        Ok(output.render(self.cx.id.as_str()))
    }

    /// Names the entry in the audit log, and who it is if the password was right.
    fn note(&self, entry: &str, person: Option<&Arc<Person>>) {
        if let Some(trail) = &self.cx.trail {
            let (account, person) = (self.account.clone(), person.cloned());
            trail.set_directory(DirectorySubject { account, entry: entry.into(), person });
        }
    }

    fn claims(&self, person: &Person, seconds: u32) -> Claims {
        let whose = Who::Entry(person.entry.clone());
        let issued = self.cx.now.as_second();
        let ends = issued.saturating_add(i64::from(seconds));
        Claims::new(SessionKind::Ldap, self.account.clone(), whose, &person.name, issued, ends)
    }
}
