//! The operations on users and groups.

use super::arn::PolicyArn;
use super::change::Context;
use super::document::AccountDocument;
use super::error::{IamCode, IamError};
use super::limits::{GROUPS_MAX, GROUPS_PER_USER_MAX, USER_NAME_CHARS_MAX, USERS_MAX};
use super::names::{Name, Path};
use super::parts::{Group, Posix, User};
use super::rules::is_free;
use super::tagging::check_tags;
use super::tags::Tags;
use crate::distinguished_name::is_dn;
use crate::unique_id::{IdKind, UniqueId};

/// The arguments of CreateUser.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// The name.
    pub name: Name,
    /// The path.
    pub path: Path,
    /// The boundary.
    pub boundary: Option<PolicyArn>,
    /// The tags.
    pub tags: Tags,
}

fn check_user_name(name: &Name) -> Result<(), IamError> {
    if name.as_str().len() <= USER_NAME_CHARS_MAX {
        return Ok(());
    }
    let rule = format!("Member must have length less than or equal to {USER_NAME_CHARS_MAX}");
    Err(IamError::constraint("userName", &rule))
}

impl AccountDocument {
    pub(super) fn user(&self, name: &Name) -> Result<&User, IamError> {
        self.users.get(name).ok_or_else(|| IamError::no_user(name))
    }

    pub(super) fn user_mut(&mut self, name: &Name) -> Result<&mut User, IamError> {
        self.users.get_mut(name).ok_or_else(|| IamError::no_user(name))
    }

    fn group(&self, name: &Name) -> Result<&Group, IamError> {
        self.groups.get(name).ok_or_else(|| IamError::no_group(name))
    }

    /// CreateUser. Returns the unique id of the new user.
    pub fn create_user(&mut self, new: &NewUser, cx: &Context<'_>) -> Result<UniqueId, IamError> {
        check_user_name(&new.name)?;
        check_tags(&Tags::new(), &new.tags, true)?;
        if self.users.contains_key(&new.name) {
            return Err(IamError::exists("User", &new.name));
        }
        if let Some(boundary) = new.boundary.as_ref().filter(|arn| !self.has_policy(arn)) {
            return Err(IamError::not_a_boundary(boundary));
        }
        if self.users.len() >= USERS_MAX {
            return Err(IamError::quota("UsersPerAccount", USERS_MAX));
        }
        let id = self.new_id(IdKind::User, cx)?;
        let user = User {
            id: id.clone(),
            path: new.path.clone(),
            created: cx.second(),
            disabled: false,
            groups: Vec::new(),
            boundary: new.boundary.clone(),
            tags: new.tags.clone(),
            attached: Vec::new(),
            inline: super::parts::Inline::new(),
            posix: None,
            keys: Vec::new(),
        };
        self.users.insert(new.name.clone(), user);
        Ok(id)
    }

    /// UpdateUser: sets another name or another path. The id stays.
    pub fn update_user(
        &mut self,
        name: &Name,
        new_name: Option<&Name>,
        new_path: Option<&Path>,
    ) -> Result<(), IamError> {
        self.user(name)?;
        if let Some(new_name) = new_name {
            check_user_name(new_name)?;
            // The same name in another case is no other user's.
            if new_name != name && self.users.contains_key(new_name) {
                return Err(IamError::exists("User", new_name));
            }
        }
        let Some((old_name, mut user)) = self.users.remove_entry(name) else {
            return Err(IamError::no_user(name));
        };
        if let Some(path) = new_path {
            user.path = path.clone();
        }
        self.users.insert(new_name.cloned().unwrap_or(old_name), user);
        Ok(())
    }

    /// DeleteUser: the user must have no policies, keys and groups any more.
    pub fn delete_user(&mut self, name: &Name) -> Result<(), IamError> {
        let user = self.user(name)?;
        for (is_empty, first) in [
            (user.attached.is_empty(), "detach all policies"),
            (user.inline.is_empty(), "delete policies"),
            (user.keys.is_empty(), "delete access keys"),
            (user.groups.is_empty(), "remove users from group"),
        ] {
            if !is_empty {
                return Err(IamError::conflict(first));
            }
        }
        self.users.remove(name);
        Ok(())
    }

    /// Refuses all keys and sessions of a user, or accepts them again (not in AWS).
    pub fn set_user_disabled(&mut self, name: &Name, disabled: bool) -> Result<(), IamError> {
        self.user_mut(name)?.disabled = disabled;
        Ok(())
    }

    /// Sets the identity that a user has on the file system (not in AWS).
    pub fn set_user_posix(&mut self, name: &Name, posix: Option<&Posix>) -> Result<(), IamError> {
        self.user_mut(name)?.posix = posix.cloned();
        Ok(())
    }

    /// CreateGroup. Returns the unique id of the new group.
    pub fn create_group(&mut self, name: &Name, path: &Path, cx: &Context<'_>) -> Result<UniqueId, IamError> {
        if self.groups.contains_key(name) {
            return Err(IamError::exists("Group", name));
        }
        if self.groups.len() >= GROUPS_MAX {
            return Err(IamError::quota("GroupsPerAccount", GROUPS_MAX));
        }
        let id = self.new_id(IdKind::Group, cx)?;
        let group = Group {
            id: id.clone(),
            path: path.clone(),
            created: cx.second(),
            attached: Vec::new(),
            inline: super::parts::Inline::new(),
            external: None,
        };
        self.groups.insert(name.clone(), group);
        Ok(id)
    }

    /// UpdateGroup: sets another name or another path. Members stay members.
    pub fn update_group(
        &mut self,
        name: &Name,
        new_name: Option<&Name>,
        new_path: Option<&Path>,
    ) -> Result<(), IamError> {
        self.group(name)?;
        if let Some(taken) = new_name.filter(|new| *new != name && self.groups.contains_key(*new)) {
            return Err(IamError::exists("Group", taken));
        }
        let Some((old_name, mut group)) = self.groups.remove_entry(name) else {
            return Err(IamError::no_group(name));
        };
        if let Some(path) = new_path {
            group.path = path.clone();
        }
        let new_name = new_name.cloned().unwrap_or(old_name);
        for member in self.users.values_mut().flat_map(|user| &mut user.groups) {
            if member == name {
                *member = new_name.clone();
            }
        }
        self.groups.insert(new_name, group);
        Ok(())
    }

    /// DeleteGroup: the group must have no members and policies.
    pub fn delete_group(&mut self, name: &Name) -> Result<(), IamError> {
        let group = self.group(name)?;
        let has_members = self.users.values().any(|user| user.groups.contains(name));
        for (is_empty, first) in [
            (!has_members, "remove users from group"),
            (group.attached.is_empty(), "detach all policies"),
            (group.inline.is_empty(), "delete policies"),
        ] {
            if !is_empty {
                return Err(IamError::conflict(first));
            }
        }
        self.groups.remove(name);
        Ok(())
    }

    /// Sets the DN of the group in the directory (LDAP) whose members get the policies of a group
    /// (not in AWS).
    pub fn set_group_external(&mut self, name: &Name, dn: Option<&str>) -> Result<(), IamError> {
        if dn.is_some_and(|dn| dn.is_empty() || !is_free(dn)) {
            let why = "The DN of a group of the directory has 1 to 512 characters, in one line.";
            return Err(IamError::new(IamCode::InvalidInput, why));
        }
        if let Some(dn) = dn.filter(|dn| !is_dn(dn)) {
            let why =
                format!("{dn} is not the DN of a group of the directory, such as cn=staff,ou=groups,dc=lab.");
            return Err(IamError::new(IamCode::InvalidInput, why));
        }
        let group = self.groups.get_mut(name).ok_or_else(|| IamError::no_group(name))?;
        group.external = dn.map(Into::into);
        Ok(())
    }

    /// AddUserToGroup. It succeeds also for a member. As in IAM, an unknown user is reported before
    /// an unknown group.
    pub fn add_user_to_group(&mut self, group: &Name, user: &Name) -> Result<(), IamError> {
        let member = self.user(user)?;
        let (group, _) = self.groups.get_key_value(group).ok_or_else(|| IamError::no_group(group))?;
        if member.groups.contains(group) {
            return Ok(());
        }
        if member.groups.len() >= GROUPS_PER_USER_MAX {
            return Err(IamError::quota("GroupsPerUser", GROUPS_PER_USER_MAX));
        }
        let group = group.clone();
        self.user_mut(user)?.groups.push(group);
        Ok(())
    }

    /// RemoveUserFromGroup. It succeeds also for a user who is not a member.
    pub fn remove_user_from_group(&mut self, group: &Name, user: &Name) -> Result<(), IamError> {
        self.user(user)?;
        self.group(group)?;
        self.user_mut(user)?.groups.retain(|there| there != group);
        Ok(())
    }
}
