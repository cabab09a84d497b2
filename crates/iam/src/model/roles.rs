//! The operations on roles.

use super::arn::PolicyArn;
use super::change::{Context, PolicyUse};
use super::document::AccountDocument;
use super::error::IamError;
use super::limits::{ROLES_MAX, TRUST_CHARS_MAX, USER_NAME_CHARS_MAX};
use super::names::{Description, Document, Name, Path};
use super::parts::{Inline, Posix, Role};
use super::rules::MAX_SESSION_SECONDS;
use super::tagging::check_tags;
use super::tags::Tags;
use crate::unique_id::{IdKind, UniqueId};

/// The arguments of CreateRole.
#[derive(Debug, Clone)]
pub struct NewRole {
    /// The name.
    pub name: Name,
    /// The path.
    pub path: Path,
    /// The trust policy, which says who may assume the role.
    pub trust: Document,
    /// The description.
    pub description: Option<Description>,
    /// The longest time that a session may last, in seconds; `None` stands for an hour.
    pub max_session: Option<u32>,
    /// The boundary.
    pub boundary: Option<PolicyArn>,
    /// The tags.
    pub tags: Tags,
}

fn check_role_name(name: &Name) -> Result<(), IamError> {
    if name.as_str().len() <= USER_NAME_CHARS_MAX {
        return Ok(());
    }
    let rule = format!("Member must have length less than or equal to {USER_NAME_CHARS_MAX}");
    Err(IamError::constraint("roleName", &rule))
}

fn check_max_session(seconds: u32) -> Result<(), IamError> {
    let (least, most) = (*MAX_SESSION_SECONDS.start(), *MAX_SESSION_SECONDS.end());
    let rule = match seconds {
        seconds if seconds < least => format!("Member must have value greater than or equal to {least}"),
        seconds if seconds > most => format!("Member must have value less than or equal to {most}"),
        _ => return Ok(()),
    };
    Err(IamError::constraint("maxSessionDuration", &rule))
}

fn check_trust(trust: &Document, cx: &Context<'_>) -> Result<(), IamError> {
    cx.check_policy(PolicyUse::Trust, trust, || IamError::quota("ACLSizePerRole", TRUST_CHARS_MAX))
        .map(|_| ())
}

impl AccountDocument {
    /// Finds a role (GetRole).
    pub fn role(&self, name: &Name) -> Result<&Role, IamError> {
        self.roles.get(name).ok_or_else(|| IamError::no_role(name))
    }

    fn role_mut(&mut self, name: &Name) -> Result<&mut Role, IamError> {
        self.roles.get_mut(name).ok_or_else(|| IamError::no_role(name))
    }

    /// CreateRole. Returns the unique id of the new role.
    pub fn create_role(&mut self, new: &NewRole, cx: &Context<'_>) -> Result<UniqueId, IamError> {
        check_role_name(&new.name)?;
        let max_session = new.max_session.unwrap_or(*MAX_SESSION_SECONDS.start());
        check_max_session(max_session)?;
        check_tags(&Tags::new(), &new.tags, true)?;
        check_trust(&new.trust, cx)?;
        if self.roles.contains_key(&new.name) {
            return Err(IamError::exists("Role", &new.name));
        }
        if let Some(boundary) = new.boundary.as_ref().filter(|arn| !self.has_policy(arn)) {
            return Err(IamError::not_a_boundary(boundary));
        }
        if self.roles.len() >= ROLES_MAX {
            return Err(IamError::quota("RolesPerAccount", ROLES_MAX));
        }
        let id = self.new_id(IdKind::Role, cx)?;
        let role = Role {
            id: id.clone(),
            path: new.path.clone(),
            created: cx.second(),
            description: new.description.clone(),
            trust: new.trust.clone(),
            max_session,
            disabled: false,
            attached: Vec::new(),
            inline: Inline::new(),
            boundary: new.boundary.clone(),
            tags: new.tags.clone(),
            posix: None,
        };
        self.roles.insert(new.name.clone(), role);
        Ok(id)
    }

    /// UpdateRole, UpdateRoleDescription: a value that is `None` stays as it is.
    pub fn update_role(
        &mut self,
        name: &Name,
        description: Option<&Description>,
        max_session: Option<u32>,
    ) -> Result<(), IamError> {
        max_session.map_or(Ok(()), check_max_session)?;
        let role = self.role_mut(name)?;
        if let Some(description) = description {
            role.description = Some(description.clone());
        }
        if let Some(max_session) = max_session {
            role.max_session = max_session;
        }
        Ok(())
    }

    /// UpdateAssumeRolePolicy. Sessions that were issued already stay valid.
    pub fn update_trust(&mut self, name: &Name, trust: &Document, cx: &Context<'_>) -> Result<(), IamError> {
        self.role(name)?;
        check_trust(trust, cx)?;
        self.role_mut(name)?.trust = trust.clone();
        Ok(())
    }

    /// DeleteRole: the role must have no policies. Its sessions end with it.
    pub fn delete_role(&mut self, name: &Name) -> Result<(), IamError> {
        let role = self.role(name)?;
        for (is_empty, first) in
            [(role.attached.is_empty(), "detach all policies"), (role.inline.is_empty(), "delete policies")]
        {
            if !is_empty {
                return Err(IamError::conflict(first));
            }
        }
        self.roles.remove(name);
        Ok(())
    }

    /// Refuses all sessions of a role and issues no more, or ends this (not in AWS).
    pub fn set_role_disabled(&mut self, name: &Name, disabled: bool) -> Result<(), IamError> {
        self.role_mut(name)?.disabled = disabled;
        Ok(())
    }

    /// Sets the identity that sessions of a role have on the file system (not in AWS).
    pub fn set_role_posix(&mut self, name: &Name, posix: Option<&Posix>) -> Result<(), IamError> {
        self.role_mut(name)?.posix = posix.cloned();
        Ok(())
    }
}
