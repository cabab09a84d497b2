//! The target of an action, for the policies that decide about it.

use iam::model::{Key, KeyOwner, Name, Path, PolicyArn, Tags, arn_of};
use iam::{AccountId, tag_value};
use iam_wire::{Action, QueryError, Tag};
use policy::Value;

use super::call::ActionCall;
use crate::audit::Named;

/// The user, role, policy, ... that an action is done with: its ARN, and the values that conditions
/// may ask for. For each kind, one method of [`ActionCall`] makes it, so that no action leaves out
/// a value.
pub(super) struct Target<'v> {
    arn: String,
    becomes: Option<String>,
    tags: Option<&'v Tags>,
    boundary: Option<&'v str>,
    sent_tags: &'v [Tag<'v>],
    sent_keys: &'v [&'v str],
    transitive: &'v [&'v str],
    sent: Vec<(&'static str, &'v str)>,
    key: Option<&'v str>,
}

impl<'v> Target<'v> {
    /// Makes a target with an ARN and no values.
    pub fn new(arn: impl Into<String>) -> Self {
        Self {
            arn: arn.into(),
            becomes: None,
            tags: None,
            boundary: None,
            sent_tags: &[],
            sent_keys: &[],
            transitive: &[],
            sent: Vec::new(),
            key: None,
        }
    }

    /// Makes the target of actions that are not done with one thing.
    pub fn nothing() -> Self {
        Self::new("*")
    }

    /// Makes the target of actions on an account: its root.
    pub fn of_account(account: &str) -> Self {
        // A text that is not the id of an account is not repeated.
        AccountId::new(account)
            .map_or_else(|_| Self::nothing(), |id| Self::new(format!("arn:aws:iam::{id}:root")))
    }

    /// Adds the ARN that the target will have with a new name or path. The requester needs the
    /// permission for both, as with IAM.
    pub fn becoming(mut self, name: Option<&str>, path: Option<&str>) -> Self {
        let (first, last) = (self.arn.find('/'), self.arn.rfind('/'));
        if let (Some(first), Some(last), true) = (first, last, name.is_some() || path.is_some()) {
            let (kind, old_path) = (&self.arn[..first], &self.arn[first..=last]);
            let (path, name) = (path.unwrap_or(old_path), name.unwrap_or(&self.arn[last + 1..]));
            self.becomes = Some(format!("{kind}{path}{name}"));
        }
        self
    }

    /// Adds the tags that the target has (`aws:ResourceTag/`, `iam:ResourceTag/`).
    pub fn having_tags(self, tags: &'v Tags) -> Self {
        Self { tags: Some(tags), ..self }
    }

    /// Adds the boundary that the target has, or that the request gives it
    /// (`iam:PermissionsBoundary`).
    pub fn bounded(self, boundary: Option<&'v str>) -> Self {
        Self { boundary, ..self }
    }

    /// Adds tags that the request sends (`aws:RequestTag/`, `aws:TagKeys`).
    pub fn sending_tags(self, tags: &'v [Tag<'v>]) -> Self {
        Self { sent_tags: tags, ..self }
    }

    /// Adds keys of tags without values that the request sends (`aws:TagKeys`).
    pub fn sending_keys(self, keys: &'v [&'v str]) -> Self {
        Self { sent_keys: keys, ..self }
    }

    /// Adds the keys of the tags that a session is to pass on (`sts:TransitiveTagKeys`).
    pub fn sending_transitive(self, keys: &'v [&'v str]) -> Self {
        Self { transitive: keys, ..self }
    }

    /// Adds the value of a condition key that is a parameter of the request.
    pub fn sending(mut self, key: &'static str, value: Option<&'v str>) -> Self {
        self.sent.extend(value.map(|value| (key, value)));
        self
    }

    /// Adds the id of an access key of `there`, for the audit log. Another text may be a secret,
    /// and is left out.
    pub fn on_key(self, id: &'v str, there: &[Key]) -> Self {
        let is_known = there.iter().any(|key| key.id.as_str() == id);
        Self { key: is_known.then_some(id), ..self }
    }

    /// Returns what the action names besides its resource, for the audit log.
    pub fn named(&self, action: Action) -> Named<'_> {
        let sent = self.sent.iter().find(|(name, _)| *name == "iam:PolicyARN");
        let boundary = self.boundary.filter(|_| gives_boundary(action));
        Named { key: self.key, policy: sent.map(|(_, arn)| *arn).or(boundary) }
    }

    /// Returns the ARN; `*` for an action without a target. A target that does not exist has the
    /// ARN that it would have.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// Returns all ARNs for which the requester needs the permission.
    pub fn arns(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.arn).chain(&self.becomes).map(String::as_str)
    }

    /// Returns the value that the condition key `key` has for a policy that decides about `action`,
    /// from the target or from the request. `tag` is the tag's key, for keys such as
    /// `aws:ResourceTag/`.
    pub fn value(&self, action: Action, key: &str, tag: &str) -> Value<'_> {
        match key {
            "aws:ResourceTag/" | "iam:ResourceTag/" => {
                let there = self.tags.into_iter().flatten();
                tag_value(there.map(|(key, value)| (key.as_str(), value.as_str())), tag)
            }
            "aws:RequestTag/" => tag_value(self.sent_tags.iter().map(|sent| (&*sent.key, &*sent.value)), tag),
            "aws:TagKeys" if self.sent_tags.is_empty() && self.sent_keys.is_empty() => Value::Absent,
            "aws:TagKeys" => {
                let of_tags = self.sent_tags.iter().map(|sent| &*sent.key);
                Value::Many(of_tags.chain(self.sent_keys.iter().copied()).map(Into::into).collect())
            }
            "sts:TransitiveTagKeys" if !self.transitive.is_empty() => {
                Value::Many(self.transitive.iter().copied().map(Into::into).collect())
            }
            "iam:PermissionsBoundary" if has_boundary(action) => self.boundary.into(),
            _ => {
                let sent = self.sent.iter().find(|(name, _)| *name == key);
                sent.map(|(_, value)| *value).into()
            }
        }
    }
}

/// True if the boundary of an action's target is the one that the request gives it.
const fn gives_boundary(action: Action) -> bool {
    matches!(
        action,
        Action::CreateUser
            | Action::CreateRole
            | Action::PutUserPermissionsBoundary
            | Action::PutRolePermissionsBoundary
    )
}

/// True if an action has the condition key `iam:PermissionsBoundary`.
///
/// Source: "Actions, resources, and condition keys for AWS Identity and Access Management" in the
/// Service Authorization Reference.
const fn has_boundary(action: Action) -> bool {
    matches!(
        action,
        Action::CreateUser
            | Action::PutUserPermissionsBoundary
            | Action::DeleteUserPermissionsBoundary
            | Action::AttachUserPolicy
            | Action::DetachUserPolicy
            | Action::PutUserPolicy
            | Action::DeleteUserPolicy
            | Action::CreateRole
            | Action::PutRolePermissionsBoundary
            | Action::DeleteRolePermissionsBoundary
            | Action::AttachRolePolicy
            | Action::DetachRolePolicy
            | Action::PutRolePolicy
            | Action::DeleteRolePolicy
    )
}

impl ActionCall<'_> {
    /// Returns the target of an action that makes something. `kind` is a word such as `user`.
    pub fn to_be_made(&self, kind: &str, path: Option<&str>, name: &str) -> Target<'_> {
        Target::new(self.arn(kind, &format!("{}{name}", path.unwrap_or("/"))))
    }

    /// Returns the target of an action that lists all things of a kind.
    pub fn all_of(&self, kind: &str) -> Target<'_> {
        Target::new(self.arn(kind, "/"))
    }

    /// Returns a user as the target; if the user exists, with its tags and boundary.
    pub fn of_user(&self, name: &str) -> Target<'_> {
        let Ok((name, user)) = self.user(name) else { return self.to_be_made("user", None, name) };
        Target::new(arn_of(self.account_id(), "user", &user.path, name))
            .having_tags(&user.tags)
            .bounded(user.boundary.as_ref().map(PolicyArn::as_str))
    }

    /// Returns the user with this name as the target, or the requester if there is no name.
    pub fn of_user_or_asker(&self, name: Option<&str>) -> Target<'_> {
        match (name, self.asking_user()) {
            (Some(name), _) => self.of_user(name),
            (None, Some((name, _))) => self.of_user(name.as_str()),
            (None, None) => Target::new(&*self.session.principal.arn),
        }
    }

    /// Returns the owner of keys as the target: the user with this name, or the requester if there
    /// is no name.
    pub fn of_key_owner(&self, name: Option<&str>) -> Result<Target<'_>, QueryError> {
        Ok(self.of_owner(&self.key_owner(name)?))
    }

    /// Returns an owner of keys as the target.
    pub fn of_owner(&self, owner: &KeyOwner) -> Target<'_> {
        match owner {
            KeyOwner::Root => Target::new(self.arn("root", "")),
            KeyOwner::User(name) => self.of_user(name.as_str()),
        }
    }

    /// Returns the owner of keys as the target of an action on one of these, by its id.
    pub fn of_key<'v>(&'v self, id: &'v str, owner: Option<&str>) -> Result<Target<'v>, QueryError> {
        let owner = self.key_owner(owner)?;
        let keys = self.document().keys_of(&owner).unwrap_or_default();
        Ok(self.of_owner(&owner).on_key(id, keys))
    }

    /// Returns the user or the role with a name as the target. `account` is the id of its account;
    /// `None` stands for the requester's.
    pub fn of_one(&self, account: Option<&str>, (user, role): (Option<&str>, Option<&str>)) -> Target<'_> {
        let id = account.map_or_else(|| Some(self.account_id().clone()), |id| AccountId::new(id).ok());
        let (kind, name) = match (user, role) {
            (Some(user), None) => ("user", user),
            (None, Some(role)) => ("role", role),
            _ => return Target::nothing(),
        };
        let (Some(id), Ok(name)) = (id, Name::new(name)) else { return Target::nothing() };
        let root = Path::root();
        let there = self.state.account(&id).map(|account| account.document());
        let found = there.and_then(|document| {
            let user = || document.users.get_key_value(&name).map(|(name, user)| (name, &user.path));
            let role = || document.roles.get_key_value(&name).map(|(name, role)| (name, &role.path));
            if kind == "user" { user() } else { role() }
        });
        let (name, path) = found.unwrap_or((&name, &root));
        Target::new(arn_of(&id, kind, path, name))
    }

    /// Returns a group as the target; groups have no tags and no boundary.
    pub fn of_group(&self, name: &str) -> Target<'_> {
        match self.group(name) {
            Ok((name, group)) => Target::new(arn_of(self.account_id(), "group", &group.path, name)),
            Err(_) => self.to_be_made("group", None, name),
        }
    }

    /// Returns a role as the target; if the role exists, with its tags and boundary.
    pub fn of_role(&self, name: &str) -> Target<'_> {
        let Ok((name, role)) = self.role(name) else { return self.to_be_made("role", None, name) };
        Target::new(arn_of(self.account_id(), "role", &role.path, name))
            .having_tags(&role.tags)
            .bounded(role.boundary.as_ref().map(PolicyArn::as_str))
    }

    /// Returns a managed policy as the target; if the policy exists, with its tags.
    pub fn of_policy(&self, arn: &str) -> Target<'_> {
        let target = Target::new(arn);
        match PolicyArn::new(arn).ok().and_then(|arn| self.document().policy(&arn)) {
            Some((_, policy)) => target.having_tags(&policy.tags),
            None => target,
        }
    }
}
