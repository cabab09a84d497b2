//! Managed policies and their versions.

use std::collections::BTreeMap;

use super::arn::PolicyArn;
use super::built_in::built_in;
use super::change::{Context, PolicyUse};
use super::document::AccountDocument;
use super::error::{IamCode, IamError};
use super::limits::{POLICIES_MAX, POLICY_CHARS_MAX, VERSIONS_MAX};
use super::names::{Description, Document, Name, Path};
use super::parts::{ManagedPolicy, PolicyVersion};
use super::tagging::check_tags;
use super::tags::Tags;
use crate::unique_id::IdKind;

/// The arguments of CreatePolicy.
#[derive(Debug, Clone)]
pub struct NewPolicy {
    /// The name.
    pub name: Name,
    /// The path.
    pub path: Path,
    /// The description.
    pub description: Option<Description>,
    /// The document of the first version.
    pub document: Document,
    /// The tags.
    pub tags: Tags,
}

fn no_version(arn: &PolicyArn, version: u32) -> IamError {
    let message = format!("Policy {arn} version v{version} does not exist or is not attachable.");
    IamError::new(IamCode::NoSuchEntity, message)
}

fn check_managed(document: &Document, cx: &Context<'_>) -> Result<(), IamError> {
    cx.check_policy(PolicyUse::Managed, document, || IamError::quota("PolicySize", POLICY_CHARS_MAX))
        .map(|_| ())
}

impl AccountDocument {
    /// Finds a managed policy of the account, to change it. A built-in policy is an error.
    pub(super) fn policy_mut(&mut self, arn: &PolicyArn) -> Result<&mut ManagedPolicy, IamError> {
        if built_in(arn).is_some() {
            let message = format!("Policy {arn} is built in, and cannot be changed.");
            return Err(IamError::new(IamCode::UnmodifiableEntity, message));
        }
        let name = self.policy(arn).map(|(name, _)| name.clone()).ok_or_else(|| IamError::no_policy(arn))?;
        self.policies.get_mut(&name).ok_or_else(|| IamError::no_policy(arn))
    }

    /// CreatePolicy. Returns the ARN of the new policy.
    pub fn create_policy(&mut self, new: &NewPolicy, cx: &Context<'_>) -> Result<PolicyArn, IamError> {
        check_tags(&Tags::new(), &new.tags, false)?;
        check_managed(&new.document, cx)?;
        if self.policies.contains_key(&new.name) {
            let message =
                format!("A policy called {} already exists. Duplicate names are not allowed.", new.name);
            return Err(IamError::new(IamCode::EntityAlreadyExists, message));
        }
        if self.policies.len() >= POLICIES_MAX {
            return Err(IamError::quota("PoliciesPerAccount", POLICIES_MAX));
        }
        let created = cx.second();
        let version = PolicyVersion { document: new.document.clone(), created };
        let policy = ManagedPolicy {
            id: self.new_id(IdKind::Policy, cx)?,
            path: new.path.clone(),
            created,
            updated: created,
            description: new.description.clone(),
            default: 1,
            next: 2,
            versions: BTreeMap::from([(1, version)]),
            tags: new.tags.clone(),
        };
        let arn = self.policy_arn(&new.name, &policy);
        self.policies.insert(new.name.clone(), policy);
        Ok(arn)
    }

    /// DeletePolicy: the policy must not be attached to anything, and have no version but the
    /// default.
    pub fn delete_policy(&mut self, arn: &PolicyArn) -> Result<(), IamError> {
        let versions = self.policy_mut(arn)?.versions.len();
        let conflict = |message: &str| Err(IamError::new(IamCode::DeleteConflict, message));
        if self.uses().any(|used| used == arn) {
            return conflict("Cannot delete a policy attached to entities.");
        }
        if versions > 1 {
            return conflict(
                "This policy has more than one version. Before you delete a policy, you must delete the policy's \
                 versions. The default version is deleted with the policy.",
            );
        }
        if let Some(parts) = arn.parts() {
            self.policies.remove(&parts.name);
        }
        Ok(())
    }

    /// CreatePolicyVersion. Returns the number of the new version.
    pub fn create_policy_version(
        &mut self,
        arn: &PolicyArn,
        document: &Document,
        set_as_default: bool,
        cx: &Context<'_>,
    ) -> Result<u32, IamError> {
        let policy = self.policy_mut(arn)?;
        check_managed(document, cx)?;
        if policy.versions.len() >= VERSIONS_MAX {
            let message = format!(
                "A managed policy can have up to {VERSIONS_MAX} versions. Before you create a new version, you must \
                 delete an existing version."
            );
            return Err(IamError::new(IamCode::LimitExceeded, message));
        }
        let number = policy.next;
        policy.next = number
            .checked_add(1)
            .ok_or_else(|| IamError::new(IamCode::LimitExceeded, "The policy has had too many versions."))?;
        policy.versions.insert(number, PolicyVersion { document: document.clone(), created: cx.second() });
        policy.updated = cx.second();
        if set_as_default {
            policy.default = number;
        }
        Ok(number)
    }

    /// DeletePolicyVersion: the version must not be the default.
    pub fn delete_policy_version(&mut self, arn: &PolicyArn, version: u32) -> Result<(), IamError> {
        let policy = self.policy_mut(arn).map_err(|e| of_version(e, arn, version))?;
        if !policy.versions.contains_key(&version) {
            return Err(no_version(arn, version));
        }
        if policy.default == version {
            let message = "Cannot delete the default version of a policy.";
            return Err(IamError::new(IamCode::DeleteConflict, message));
        }
        policy.versions.remove(&version);
        Ok(())
    }

    /// SetDefaultPolicyVersion.
    pub fn set_default_policy_version(&mut self, arn: &PolicyArn, version: u32) -> Result<(), IamError> {
        let policy = self.policy_mut(arn).map_err(|e| of_version(e, arn, version))?;
        if !policy.versions.contains_key(&version) {
            return Err(no_version(arn, version));
        }
        policy.default = version;
        Ok(())
    }
}

/// Makes the error for a version that does not exist, which names the version, too.
fn of_version(error: IamError, arn: &PolicyArn, version: u32) -> IamError {
    if error.code == IamCode::NoSuchEntity { no_version(arn, version) } else { error }
}
