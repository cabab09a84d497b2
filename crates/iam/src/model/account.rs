//! Changes of an account as a whole: its alias, its name, and whether it is disabled.

use super::document::AccountDocument;
use super::error::{IamCode, IamError};
use super::limits::{
    ACCESS_KEYS_MAX, ATTACHED_MAX, GROUP_POLICIES_CHARS_MAX, GROUPS_MAX, GROUPS_PER_USER_MAX, POLICIES_MAX,
    POLICY_CHARS_MAX, ROLE_POLICIES_CHARS_MAX, ROLES_MAX, TRUST_CHARS_MAX, USER_POLICIES_CHARS_MAX,
    USERS_MAX, VERSIONS_IN_USE_MAX, VERSIONS_MAX,
};
use super::names::Alias;
use super::rules::is_free;
use crate::account::AccountId;

/// Checks the name that an administrator gives an account.
pub(crate) fn check_account_name(name: &str) -> Result<(), IamError> {
    let refused = |why: &str| Err(IamError::new(IamCode::InvalidInput, why));
    if name.is_empty() || !is_free(name) {
        return refused("The name of an account has 1 to 512 characters, in one line.");
    }
    if name.trim() != name {
        return refused("The name of an account neither begins nor ends with a space.");
    }
    // Whoever names an account by it would mean another one.
    if AccountId::new(name).is_ok() {
        return refused(
            "The name of an account is not a number of 12 digits: those are the numbers of accounts.",
        );
    }
    Ok(())
}

impl AccountDocument {
    /// Returns GetAccountSummary's entries: the numbers of things in the account, and the quotas.
    /// Names and order are IAM's.
    pub fn summary(&self) -> Vec<(&'static str, usize)> {
        let versions = self.policies.values().map(|policy| policy.versions.len()).sum();
        vec![
            ("AccessKeysPerUserQuota", ACCESS_KEYS_MAX),
            ("AccountAccessKeysPresent", usize::from(!self.root_keys.is_empty())),
            ("AccountMFAEnabled", 0),
            ("AccountPasswordPresent", 0),
            ("AccountSigningCertificatesPresent", 0),
            ("AssumeRolePolicySizeQuota", TRUST_CHARS_MAX),
            ("AttachedPoliciesPerGroupQuota", ATTACHED_MAX),
            ("AttachedPoliciesPerRoleQuota", ATTACHED_MAX),
            ("AttachedPoliciesPerUserQuota", ATTACHED_MAX),
            ("GlobalEndpointTokenVersion", 1),
            ("GroupPolicySizeQuota", GROUP_POLICIES_CHARS_MAX),
            ("Groups", self.groups.len()),
            ("GroupsPerUserQuota", GROUPS_PER_USER_MAX),
            ("GroupsQuota", GROUPS_MAX),
            ("InstanceProfiles", 0),
            ("InstanceProfilesQuota", 0),
            ("MFADevices", 0),
            ("MFADevicesInUse", 0),
            ("Policies", self.policies.len()),
            ("PoliciesQuota", POLICIES_MAX),
            ("PolicySizeQuota", POLICY_CHARS_MAX),
            ("PolicyVersionsInUse", versions),
            ("PolicyVersionsInUseQuota", VERSIONS_IN_USE_MAX),
            ("Providers", self.providers.len()),
            ("RolePolicySizeQuota", ROLE_POLICIES_CHARS_MAX),
            ("Roles", self.roles.len()),
            ("RolesQuota", ROLES_MAX),
            ("ServerCertificates", 0),
            ("ServerCertificatesQuota", 0),
            ("SigningCertificatesPerUserQuota", 0),
            ("UserPolicySizeQuota", USER_POLICIES_CHARS_MAX),
            ("Users", self.users.len()),
            ("UsersQuota", USERS_MAX),
            ("VersionsPerPolicyQuota", VERSIONS_MAX),
        ]
    }

    /// CreateAccountAlias: an account has one alias, so that a new one replaces the old. The
    /// caller, who has all accounts, checks that no other account has it.
    pub fn set_alias(&mut self, alias: &Alias) {
        self.alias = Some(alias.clone());
    }

    /// DeleteAccountAlias.
    pub fn delete_alias(&mut self, alias: &Alias) -> Result<(), IamError> {
        if self.alias.as_ref() != Some(alias) {
            let message = format!("The account alias {alias} cannot be found.");
            return Err(IamError::new(IamCode::NoSuchEntity, message));
        }
        self.alias = None;
        Ok(())
    }

    /// Gives the account another name (not in AWS).
    pub fn set_name(&mut self, name: &str) -> Result<(), IamError> {
        check_account_name(name)?;
        self.name = name.into();
        Ok(())
    }

    /// Refuses all keys and sessions of an account, or accepts them again (not in AWS).
    pub fn set_disabled(&mut self, disabled: bool) {
        self.disabled = disabled;
    }
}
