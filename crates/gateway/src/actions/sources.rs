//! The policies of an entity together with their texts, for simulations.

use std::sync::Arc;

use iam::model::{Inline, Name, PolicyArn, built_in};
use iam_wire::{PolicySource, QueryCode, QueryError};
use policy::{Kind, Policy};

use super::call::ActionCall;
use super::error;
use super::place::{Place, places};

/// A policy, with its text and its source.
pub(super) struct Sourced {
    id: String,
    /// The text.
    pub text: String,
    /// The compiled policy.
    pub policy: Arc<Policy>,
    /// The places of its statements in the text.
    pub places: Vec<Place>,
}

impl Sourced {
    fn new(id: String, text: &str) -> Result<Self, QueryError> {
        let policy = Policy::parse(text.as_bytes(), Kind::Role).map_err(|why| {
            QueryError::new(QueryCode::InvalidInput, format!("The policy {id} cannot be read: {why}"))
        })?;
        Ok(Self { id, text: text.to_owned(), policy: Arc::new(policy), places: places(text) })
    }

    /// Returns id, kind and the places of the statements.
    pub fn shown(&self) -> (&str, PolicySource, &[Place]) {
        (&self.id, PolicySource::Identity, &self.places)
    }
}

/// Compiles the policies in the parameter `list`.
pub(super) fn given(texts: &[&str], list: &str) -> Result<Vec<Sourced>, QueryError> {
    let numbered = texts.iter().enumerate();
    numbered.map(|(at, text)| Sourced::new(format!("{list}.{}", at + 1), text)).collect()
}

/// A user, group or role whose policies are simulated.
#[derive(Default)]
pub(super) struct Entity {
    /// All policies of the entity; for a user, including those of its groups.
    pub policies: Vec<Sourced>,
    /// The entity's permissions boundary.
    pub boundary: Option<Sourced>,
    /// True if the entity is a user.
    pub user: bool,
    /// The unique id, if the entity is a user.
    pub id: Option<String>,
    /// The ARN of a made-up session, if the entity is a role.
    pub session: Option<String>,
}

/// Finds a user, group or role by its ARN, in which case and path matter.
pub(super) fn of_entity(call: &ActionCall<'_>, arn: &str) -> Result<Entity, QueryError> {
    let text = arn.rsplit('/').next().unwrap_or_default();
    let kind = arn.split(':').nth(5).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let is_it = |path: &str| arn == format!("{}{path}{text}", call.arn(kind, ""));
    let missing = || error::missing(kind, text);
    match kind {
        "user" => {
            let (name, user) = call.user(text)?;
            let user = Some(user).filter(|user| is_it(user.path.as_str())).ok_or_else(missing)?;
            let mut all = own(call, "user", name, &user.inline, &user.attached)?;
            for group in &user.groups {
                all.extend(of_group(call, group.as_str())?);
            }
            let boundary = user.boundary.as_ref().map(|arn| managed(call, arn)).transpose()?;
            let id = Some(user.id.to_string());
            Ok(Entity { policies: all, boundary, user: true, id, session: None })
        }
        "group" => {
            let (_, group) = call.group(text)?;
            Some(group).filter(|group| is_it(group.path.as_str())).ok_or_else(missing)?;
            Ok(Entity { policies: of_group(call, text)?, ..Entity::default() })
        }
        "role" => {
            let (name, role) = call.role(text)?;
            let role = Some(role).filter(|role| is_it(role.path.as_str())).ok_or_else(missing)?;
            let policies = own(call, "role", name, &role.inline, &role.attached)?;
            let boundary = role.boundary.as_ref().map(|arn| managed(call, arn)).transpose()?;
            let session = format!("arn:aws:sts::{}:assumed-role/{name}/simulated", call.account_id());
            Ok(Entity { policies, boundary, session: Some(session), ..Entity::default() })
        }
        _ => Err(missing()),
    }
}

fn of_group(call: &ActionCall<'_>, text: &str) -> Result<Vec<Sourced>, QueryError> {
    let (name, group) = call.group(text)?;
    own(call, "group", name, &group.inline, &group.attached)
}

fn own(
    call: &ActionCall<'_>,
    kind: &str,
    name: &Name,
    inline: &Inline,
    attached: &[PolicyArn],
) -> Result<Vec<Sourced>, QueryError> {
    let of_inline =
        inline.iter().map(|(policy, text)| Sourced::new(format!("{kind}_{name}_{policy}"), text.as_str()));
    of_inline.chain(attached.iter().map(|arn| managed(call, arn))).collect()
}

/// Returns the default version of a managed policy. Its id is its name, as IAM shows it.
fn managed(call: &ActionCall<'_>, arn: &PolicyArn) -> Result<Sourced, QueryError> {
    let name = arn.as_str().rsplit('/').next().unwrap_or_default().to_owned();
    if let Some(policy) = built_in(arn) {
        return Sourced::new(name, policy.document);
    }
    let found = call.document().policy(arn).and_then(|(_, policy)| policy.versions.get(&policy.default));
    let version = found.ok_or_else(|| error::no_policy(arn.as_str()))?;
    Sourced::new(name, version.document.as_str())
}
