//! The operations on the policies of users, groups and roles: inline policies, attached policies
//! and boundaries.

use super::arn::PolicyArn;
use super::change::{Context, PolicyUse};
use super::document::AccountDocument;
use super::error::{IamCode, IamError};
use super::limits::ATTACHED_MAX;
use super::names::{Document, Name};
use super::parts::Inline;

/// A user, group or role, to which policies belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A user.
    User(Name),
    /// A group.
    Group(Name),
    /// A role.
    Role(Name),
}

impl Holder {
    /// Returns the kind in lower case, and the name.
    const fn parts(&self) -> (&'static str, &Name) {
        match self {
            Self::User(name) => ("user", name),
            Self::Group(name) => ("group", name),
            Self::Role(name) => ("role", name),
        }
    }

    const fn inline_use(&self) -> PolicyUse {
        match self {
            Self::User(_) => PolicyUse::User,
            Self::Group(_) => PolicyUse::Group,
            Self::Role(_) => PolicyUse::Role,
        }
    }

    const fn attached_quota(&self) -> &'static str {
        match self {
            Self::User(_) => "PoliciesPerUser",
            Self::Group(_) => "PoliciesPerGroup",
            Self::Role(_) => "PoliciesPerRole",
        }
    }
}

impl AccountDocument {
    fn rights_mut(&mut self, of: &Holder) -> Result<(&mut Inline, &mut Vec<PolicyArn>), IamError> {
        match of {
            Holder::User(name) => self.user_mut(name).map(|user| (&mut user.inline, &mut user.attached)),
            Holder::Group(name) => {
                let group = self.groups.get_mut(name).ok_or_else(|| IamError::no_group(name))?;
                Ok((&mut group.inline, &mut group.attached))
            }
            Holder::Role(name) => {
                let role = self.roles.get_mut(name).ok_or_else(|| IamError::no_role(name))?;
                Ok((&mut role.inline, &mut role.attached))
            }
        }
    }

    /// PutUserPolicy, PutGroupPolicy, PutRolePolicy. All inline policies of one user, group or role
    /// share a limit.
    pub fn put_inline_policy(
        &mut self,
        of: &Holder,
        name: &Name,
        document: &Document,
        cx: &Context<'_>,
    ) -> Result<(), IamError> {
        let (kind, of_name) = of.parts();
        let used_as = of.inline_use();
        let max = used_as.chars_max();
        let too_long = || {
            let message = format!("Maximum policy size of {max} bytes exceeded for {kind} {of_name}");
            IamError::new(IamCode::LimitExceeded, message)
        };
        let (inline, _) = self.rights_mut(of)?;
        let mut sum = cx.check_policy(used_as, document, too_long)?;
        for (_, other) in inline.iter().filter(|(there, _)| *there != name) {
            // One that is not a policy any more (the language has become stricter) counts in full.
            sum +=
                cx.check_policy(used_as, other, too_long).unwrap_or_else(|_| other.as_str().chars().count());
        }
        if sum > max {
            return Err(too_long());
        }
        // The key, too, so that the name is shown as it was given now.
        inline.remove(name);
        inline.insert(name.clone(), document.clone());
        Ok(())
    }

    /// DeleteUserPolicy, DeleteGroupPolicy, DeleteRolePolicy.
    pub fn delete_inline_policy(&mut self, of: &Holder, name: &Name) -> Result<(), IamError> {
        let (kind, _) = of.parts();
        let (inline, _) = self.rights_mut(of)?;
        let message = || format!("The {kind} policy with name {name} cannot be found.");
        inline.remove(name).map(|_| ()).ok_or_else(|| IamError::new(IamCode::NoSuchEntity, message()))
    }

    /// AttachUserPolicy, AttachGroupPolicy, AttachRolePolicy. They succeed also if the policy is
    /// attached already.
    pub fn attach_policy(&mut self, to: &Holder, arn: &PolicyArn) -> Result<(), IamError> {
        let exists = self.has_policy(arn);
        let (_, attached) = self.rights_mut(to)?;
        if !exists {
            return Err(IamError::not_attachable(arn));
        }
        if attached.contains(arn) {
            return Ok(());
        }
        if attached.len() >= ATTACHED_MAX {
            return Err(IamError::quota(to.attached_quota(), ATTACHED_MAX));
        }
        attached.push(arn.clone());
        Ok(())
    }

    /// DetachUserPolicy, DetachGroupPolicy, DetachRolePolicy.
    pub fn detach_policy(&mut self, from: &Holder, arn: &PolicyArn) -> Result<(), IamError> {
        let (_, attached) = self.rights_mut(from)?;
        let at = attached.iter().position(|there| there == arn).ok_or_else(|| IamError::no_policy(arn))?;
        attached.remove(at);
        Ok(())
    }

    /// PutUserPermissionsBoundary and PutRolePermissionsBoundary; with `None`, the operations that
    /// delete a boundary. Groups have none.
    pub fn set_boundary(&mut self, of: &Holder, arn: Option<&PolicyArn>) -> Result<(), IamError> {
        let exists = arn.is_none_or(|arn| self.has_policy(arn));
        let boundary = match of {
            Holder::User(name) => &mut self.user_mut(name)?.boundary,
            Holder::Role(name) => {
                &mut self.roles.get_mut(name).ok_or_else(|| IamError::no_role(name))?.boundary
            }
            Holder::Group(_) => {
                return Err(IamError::new(IamCode::InvalidInput, "A group has no permissions boundary."));
            }
        };
        if let Some(arn) = arn.filter(|_| !exists) {
            return Err(IamError::not_a_boundary(arn));
        }
        *boundary = arn.cloned();
        Ok(())
    }
}
