//! The principals that statements name.

use crate::arn::split;
use crate::catalogue::Key;
use crate::fault::Fault;
use crate::party::{Party, PartyKind};

/// The name by which a statement covers a requester. If several apply, the last of these variants
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bond {
    /// The statement names the requester's account.
    Account,
    /// The statement names the requester's role, or the user who asked for the federated session.
    Issuer,
    /// The statement names the requester's own ARN.
    Own,
    /// The statement names everybody.
    Everyone,
}

/// The principals of a statement.
#[derive(Debug, Clone, Default)]
pub struct Principals {
    /// True for `NotPrincipal`.
    pub not: bool,
    everyone: bool,
    accounts: Vec<Box<str>>,
    canonical_ids: Vec<Box<str>>,
    /// ARNs, and unique ids of users and roles.
    named: Vec<Box<str>>,
    services: Vec<Box<str>>,
    providers: Vec<Box<str>>,
}

/// The number of digits of an account id.
const ACCOUNT_DIGITS: usize = 12;
/// The number of characters of a canonical id.
const CANONICAL_CHARS: usize = 64;

impl Principals {
    /// Adds everybody.
    pub fn add_everyone(&mut self) {
        self.everyone = true;
    }

    /// Adds a principal. `kind` is the name of its member in the document, such as `AWS` or
    /// `Service`.
    pub fn add(&mut self, kind: &str, name: &str) -> Result<(), Fault> {
        let wrong =
            || Fault::Principal(format!("\"{kind}\":\"{}\"", name.chars().take(200).collect::<String>()));
        let list = match kind {
            "AWS" if name == "*" => {
                self.everyone = true;
                return Ok(());
            }
            "AWS" if is_account(name) => &mut self.accounts,
            "AWS" if is_unique_id(name) => &mut self.named,
            "AWS" => match arn(name) {
                Some(Arn::Root(account)) => {
                    self.accounts.push(account.into());
                    return Ok(());
                }
                Some(Arn::Named) => &mut self.named,
                None => return Err(wrong()),
            },
            "CanonicalUser" if is_canonical_id(name) => &mut self.canonical_ids,
            "Service" if is_service(name) => &mut self.services,
            "Federated" if is_provider(name) => &mut self.providers,
            _ => return Err(wrong()),
        };
        list.push(name.into());
        Ok(())
    }

    /// True if the list names everybody, or an identity provider, which can vouch for anybody.
    pub const fn names_anybody(&self) -> bool {
        !self.not && (self.everyone || !self.providers.is_empty())
    }

    /// True for a condition key whose values are claims of an identity provider in the list, such
    /// as `idp.example.org/lab:aud`.
    pub fn has_provider_of(&self, key: &Key) -> bool {
        let Key::Foreign(name) = key else { return false };
        let Some((of, _)) = name.rsplit_once(':') else { return false };
        let url = |provider: &str| provider.split_once('/').map(|(_, url)| url.to_ascii_lowercase());
        !self.not && self.providers.iter().any(|provider| url(provider).as_deref() == Some(of))
    }

    /// Returns the name by which the list covers a requester; `None` if it does not cover the
    /// requester. The flag `not` is ignored.
    pub fn bond(&self, party: &Party<'_>) -> Option<Bond> {
        let has = |list: &[Box<str>], name: &str| list.iter().any(|one| **one == *name);
        if self.everyone {
            return Some(Bond::Everyone);
        }
        match party.kind {
            PartyKind::Anonymous => return None,
            PartyKind::Service => return has(&self.services, party.arn).then_some(Bond::Own),
            PartyKind::Federated => return has(&self.providers, party.arn).then_some(Bond::Own),
            PartyKind::Root | PartyKind::User | PartyKind::RoleSession | PartyKind::FederatedUser => {}
        }
        if self.names(Some(party.arn), party.id) {
            return Some(Bond::Own);
        }
        if self.names(party.issuer, party.issuer_id) {
            return Some(Bond::Issuer);
        }
        if has(&self.accounts, party.account) || has(&self.canonical_ids, party.canonical_id) {
            // For its root, that is itself.
            return Some(if party.kind == PartyKind::Root { Bond::Own } else { Bond::Account });
        }
        None
    }

    /// True if the list has the ARN or the unique id.
    fn names(&self, arn: Option<&str>, id: Option<&str>) -> bool {
        let is_it = |one: &str| arn == Some(one) || id == Some(one);
        self.named.iter().any(|one| is_it(one))
    }

    /// True if the list has everything by which the requester can be named: its account, its role
    /// or the user who asked for its session, and itself. `NotPrincipal` exempts a requester only
    /// then.
    pub fn has_chain(&self, party: &Party<'_>) -> bool {
        let has = |list: &[Box<str>], name: &str| list.iter().any(|one| **one == *name);
        if self.everyone {
            return true;
        }
        match party.kind {
            PartyKind::Anonymous => false,
            PartyKind::Service => has(&self.services, party.arn),
            PartyKind::Federated => has(&self.providers, party.arn),
            PartyKind::Root | PartyKind::User | PartyKind::RoleSession | PartyKind::FederatedUser => {
                let account =
                    has(&self.accounts, party.account) || has(&self.canonical_ids, party.canonical_id);
                let issuer = party.issuer.is_none() || self.names(party.issuer, party.issuer_id);
                account && issuer && (party.kind == PartyKind::Root || self.names(Some(party.arn), party.id))
            }
        }
    }
}

fn is_account(text: &str) -> bool {
    text.len() == ACCOUNT_DIGITS && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_canonical_id(text: &str) -> bool {
    text.len() == CANONICAL_CHARS && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// True for a text that has only characters of names and ARNs, and no wildcards.
pub fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "+=,.@_-/".contains(c);
    !text.is_empty() && text.chars().all(allowed)
}

/// The number of characters of a unique id after the four that stand for its kind.
const ID_CHARS: usize = 17;

/// True for the unique id of a user or a role, or of a session of a role.
fn is_unique_id(text: &str) -> bool {
    let (id, session) = text.split_once(':').map_or((text, None), |(id, session)| (id, Some(session)));
    let Some((kind, rest)) = id.split_at_checked(4) else { return false };
    let is_known = match session {
        None => matches!(kind, "AIDA" | "AROA"),
        Some(session) => kind == "AROA" && is_name(session) && !session.contains('/'),
    };
    is_known
        && rest.len() == ID_CHARS
        && rest.bytes().all(|b| b.is_ascii_uppercase() || matches!(b, b'2'..=b'7'))
}

/// The ARN of a principal.
enum Arn<'a> {
    /// The root of the account with this id, which stands for the whole account.
    Root(&'a str),
    /// A user, a role or a session.
    Named,
}

/// Reads the ARN of a principal; `None` if it is not one.
fn arn(text: &str) -> Option<Arn<'_>> {
    let [_, partition, service, region, account, resource] = split(text)?;
    if partition != "aws" || !region.is_empty() || !is_account(account) {
        return None;
    }
    if service == "iam" && resource == "root" {
        return Some(Arn::Root(account));
    }
    let (kind, name) = resource.split_once('/')?;
    let is_named = is_name(name) && !name.starts_with('/') && !name.ends_with('/');
    let is_known = match (service, kind) {
        ("iam", "user" | "role") | ("sts", "federated-user") => true,
        ("sts", "assumed-role") => name.split_once('/').is_some_and(|(_, session)| !session.contains('/')),
        _ => false,
    };
    (is_known && is_named).then_some(Arn::Named)
}

fn is_service(text: &str) -> bool {
    text.contains('.') && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
}

/// True for the ARN of an identity provider, or the name of a provider that AWS knows by name.
fn is_provider(text: &str) -> bool {
    match split(text) {
        Some([_, "aws", "iam", "", account, resource]) => {
            let provider = resource
                .split_once('/')
                .filter(|(kind, _)| matches!(*kind, "oidc-provider" | "saml-provider"));
            is_account(account)
                && provider.is_some_and(|(_, name)| {
                    name.chars().all(|c| c.is_ascii_graphic() && !"*?".contains(c)) && !name.is_empty()
                })
        }
        Some(_) => false,
        None => is_service(text),
    }
}
