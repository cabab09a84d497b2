//! The table of actions: all actions in the API models of IAM and STS, and ours.

use crate::error::{QueryCode, QueryError};
use crate::form::Form;
use crate::service::Service;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct ActionInfo {
    /// The action.
    pub action: Action,
    /// The name of the action, which is the value of the parameter `Action`.
    pub name: &'static str,
    /// The service of the action, which the value of `Version` names.
    pub service: Service,
    /// The permission that the requester needs.
    pub permission: Permission,
    /// True if the action changes something, or issues a session: then it refuses parameters that
    /// it does not know.
    pub changes: bool,
    /// The secrets in the action's requests and answers.
    pub secrets: Secrets,
    /// The state of the action's implementation.
    pub state: State,
}

/// The permission that the requester of an action needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The permission for the action of policies with this name.
    Of(&'static str),
    /// No permission. The action tells requesters about themselves, asks for another proof than a
    /// signature, or is neither in AWS's list of actions nor served.
    Unasked,
    /// Everything: the requester must be the administrator of the tree.
    Administrator,
}

impl Permission {
    /// Returns the action of policies that has to be allowed; `None` if no policy is asked. A test
    /// ensures that each name exists.
    pub fn action(self) -> Option<policy::Action> {
        match self {
            Self::Of(name) => policy::Action::named(name),
            Self::Unasked | Self::Administrator => None,
        }
    }
}

/// The secrets in requests and answers of an action. Requests for actions with secrets are refused
/// on connections that others could listen to, unless the operator allows this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// Neither has a secret.
    Plain,
    /// The request has a secret.
    Takes,
    /// The answer has a secret.
    Gives,
    /// Both have secrets.
    Both,
}

/// The state of an action's implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The action is performed if the wave (a group of actions that are implemented together,
    /// decision 0068) with this number is implemented. Waves 1 to 5 are.
    Wave(u8),
    /// The action is one of this server's own actions, and is performed.
    Ours,
    /// The action is one of this server's own actions, and is not implemented yet.
    Later,
    /// The answer is always an empty list of this name, since this server has no such things.
    Empty(&'static str),
    /// The answer is always `NoSuchEntity`, since this server has no such things.
    Missing,
    /// The action is refused with 501 `NotImplemented`.
    Refused,
}

impl State {
    /// True if the action is answered with something else than `NotImplemented`.
    pub const fn is_served(self) -> bool {
        match self {
            Self::Wave(number) => number <= WAVES_BUILT,
            Self::Ours | Self::Empty(_) | Self::Missing => true,
            Self::Later | Self::Refused => false,
        }
    }
}

/// The number of the last wave that is built.
const WAVES_BUILT: u8 = 5;

/// The table of actions, as a macro. It passes its rows to another macro, which makes an item from
/// them, such as an enum, or a match over all actions.
///
/// A row has an action's name, its service ([`Service`]), its permission ([`Permission`]; `Own` is
/// the action of policies that has the same name), whether it changes anything, its secrets
/// ([`Secrets`]), and its state ([`State`]).
#[macro_export]
macro_rules! for_each_action {
    ($callback:ident) => {
        $callback! {
            AcceptDelegationRequest Iam Own Changes Plain Refused
            AcquireRole Iam Unasked Changes Plain Refused
            AddClientIDToOpenIDConnectProvider Iam Own Changes Plain Wave3
            AddRoleToInstanceProfile Iam Own Changes Plain Refused
            AddUserToGroup Iam Own Changes Plain Wave1
            AssociateDelegationRequest Iam Own Changes Plain Refused
            AttachGroupPolicy Iam Own Changes Plain Wave1
            AttachRolePolicy Iam Own Changes Plain Wave2
            AttachUserPolicy Iam Own Changes Plain Wave1
            ChangePassword Iam Own Changes Takes Refused
            CreateAccessKey Iam Own Changes Gives Wave1
            CreateAccountAlias Iam Own Changes Plain Wave1
            CreateDelegationRequest Iam Own Changes Plain Refused
            CreateGroup Iam Own Changes Plain Wave1
            CreateInstanceProfile Iam Own Changes Plain Refused
            CreateLoginProfile Iam Own Changes Takes Refused
            CreateOpenIDConnectProvider Iam Own Changes Plain Wave3
            CreatePolicy Iam Own Changes Plain Wave1
            CreatePolicyVersion Iam Own Changes Plain Wave1
            CreateRole Iam Own Changes Plain Wave2
            CreateSAMLProvider Iam Own Changes Takes Refused
            CreateServiceLinkedRole Iam Own Changes Plain Refused
            CreateServiceSpecificCredential Iam Own Changes Gives Refused
            CreateUser Iam Own Changes Plain Wave1
            CreateVirtualMFADevice Iam Own Changes Gives Refused
            DeactivateMFADevice Iam Own Changes Plain Refused
            DeleteAccessKey Iam Own Changes Plain Wave1
            DeleteAccountAlias Iam Own Changes Plain Wave1
            DeleteAccountPasswordPolicy Iam Own Changes Plain Refused
            DeleteGroup Iam Own Changes Plain Wave1
            DeleteGroupPolicy Iam Own Changes Plain Wave1
            DeleteInstanceProfile Iam Own Changes Plain Refused
            DeleteLoginProfile Iam Own Changes Plain Missing
            DeleteOpenIDConnectProvider Iam Own Changes Plain Wave3
            DeletePolicy Iam Own Changes Plain Wave1
            DeletePolicyVersion Iam Own Changes Plain Wave1
            DeleteRole Iam Own Changes Plain Wave2
            DeleteRolePermissionsBoundary Iam Own Changes Plain Wave2
            DeleteRolePolicy Iam Own Changes Plain Wave2
            DeleteSAMLProvider Iam Own Changes Plain Refused
            DeleteSSHPublicKey Iam Own Changes Plain Refused
            DeleteServerCertificate Iam Own Changes Plain Refused
            DeleteServiceLinkedRole Iam Own Changes Plain Refused
            DeleteServiceSpecificCredential Iam Own Changes Plain Refused
            DeleteSigningCertificate Iam Own Changes Plain Refused
            DeleteUser Iam Own Changes Plain Wave1
            DeleteUserPermissionsBoundary Iam Own Changes Plain Wave1
            DeleteUserPolicy Iam Own Changes Plain Wave1
            DeleteVirtualMFADevice Iam Own Changes Plain Refused
            DetachGroupPolicy Iam Own Changes Plain Wave1
            DetachRolePolicy Iam Own Changes Plain Wave2
            DetachUserPolicy Iam Own Changes Plain Wave1
            DisableOrganizationsRootCredentialsManagement Iam Own Changes Plain Refused
            DisableOrganizationsRootSessions Iam Own Changes Plain Refused
            DisableOutboundWebIdentityFederation Iam Own Changes Plain Refused
            EnableMFADevice Iam Own Changes Plain Refused
            EnableOrganizationsRootCredentialsManagement Iam Own Changes Plain Refused
            EnableOrganizationsRootSessions Iam Own Changes Plain Refused
            EnableOutboundWebIdentityFederation Iam Own Changes Plain Refused
            GenerateCredentialReport Iam Own Changes Plain Refused
            GenerateOrganizationsAccessReport Iam Own Changes Plain Refused
            GenerateServiceLastAccessedDetails Iam Own Changes Plain Refused
            GetAccessKeyLastUsed Iam Own Reads Plain Wave1
            GetAccountAuthorizationDetails Iam Own Reads Plain Wave4
            GetAccountPasswordPolicy Iam Own Reads Plain Missing
            GetAccountProperties Iam Own Reads Plain Refused
            GetAccountSummary Iam Own Reads Plain Wave1
            GetContextKeysForCustomPolicy Iam Own Reads Plain Wave4
            GetContextKeysForPrincipalPolicy Iam Own Reads Plain Wave4
            GetCredentialReport Iam Own Reads Plain Refused
            GetDelegationRequest Iam Own Reads Plain Refused
            GetGroup Iam Own Reads Plain Wave1
            GetGroupPolicy Iam Own Reads Plain Wave1
            GetHumanReadableSummary Iam Own Reads Plain Refused
            GetInstanceProfile Iam Own Reads Plain Refused
            GetLoginProfile Iam Own Reads Plain Missing
            GetMFADevice Iam Own Reads Plain Refused
            GetOpenIDConnectProvider Iam Own Reads Plain Wave3
            GetOrganizationsAccessReport Iam Own Reads Plain Refused
            GetOutboundWebIdentityFederationInfo Iam Own Reads Plain Refused
            GetPolicy Iam Own Reads Plain Wave1
            GetPolicyVersion Iam Own Reads Plain Wave1
            GetRole Iam Own Reads Plain Wave2
            GetRolePolicy Iam Own Reads Plain Wave2
            GetRoleTemplateVersion Iam Own Reads Plain Refused
            GetSAMLProvider Iam Own Reads Plain Refused
            GetSSHPublicKey Iam Own Reads Plain Refused
            GetServerCertificate Iam Own Reads Plain Refused
            GetServiceLastAccessedDetails Iam Own Reads Plain Refused
            GetServiceLastAccessedDetailsWithEntities Iam Own Reads Plain Refused
            GetServiceLinkedRoleDeletionStatus Iam Own Reads Plain Refused
            GetUser Iam Own Reads Plain Wave1
            GetUserPolicy Iam Own Reads Plain Wave1
            ListAccessKeys Iam Own Reads Plain Wave1
            ListAccountAliases Iam Own Reads Plain Wave1
            ListAttachedGroupPolicies Iam Own Reads Plain Wave1
            ListAttachedRolePolicies Iam Own Reads Plain Wave2
            ListAttachedUserPolicies Iam Own Reads Plain Wave1
            ListDelegationRequests Iam Own Reads Plain Refused
            ListEntitiesForPolicy Iam Own Reads Plain Wave1
            ListGroupPolicies Iam Own Reads Plain Wave1
            ListGroups Iam Own Reads Plain Wave1
            ListGroupsForUser Iam Own Reads Plain Wave1
            ListInstanceProfileTags Iam Own Reads Plain Refused
            ListInstanceProfiles Iam Own Reads Plain (Empty "InstanceProfiles")
            ListInstanceProfilesForRole Iam Own Reads Plain (Empty "InstanceProfiles")
            ListMFADeviceTags Iam Own Reads Plain Refused
            ListMFADevices Iam Own Reads Plain (Empty "MFADevices")
            ListOpenIDConnectProviderTags Iam Own Reads Plain Wave3
            ListOpenIDConnectProviders Iam Own Reads Plain Wave3
            ListOrganizationsFeatures Iam Own Reads Plain Refused
            ListPolicies Iam Own Reads Plain Wave1
            ListPoliciesGrantingServiceAccess Iam Own Reads Plain Refused
            ListPolicyTags Iam Own Reads Plain Wave1
            ListPolicyVersions Iam Own Reads Plain Wave1
            ListRolePolicies Iam Own Reads Plain Wave2
            ListRoleTags Iam Own Reads Plain Wave2
            ListRoles Iam Own Reads Plain Wave2
            ListSAMLProviderTags Iam Own Reads Plain Refused
            ListSAMLProviders Iam Own Reads Plain (Empty "SAMLProviderList")
            ListSSHPublicKeys Iam Own Reads Plain (Empty "SSHPublicKeys")
            ListServerCertificateTags Iam Own Reads Plain Refused
            ListServerCertificates Iam Own Reads Plain (Empty "ServerCertificateMetadataList")
            ListServiceSpecificCredentials Iam Own Reads Plain (Empty "ServiceSpecificCredentials")
            ListSigningCertificates Iam Own Reads Plain (Empty "Certificates")
            ListUserPolicies Iam Own Reads Plain Wave1
            ListUserTags Iam Own Reads Plain Wave1
            ListUsers Iam Own Reads Plain Wave1
            ListVirtualMFADevices Iam Own Reads Plain (Empty "VirtualMFADevices")
            PutAccountProperties Iam Own Changes Plain Refused
            PutGroupPolicy Iam Own Changes Plain Wave1
            PutRolePermissionsBoundary Iam Own Changes Plain Wave2
            PutRolePolicy Iam Own Changes Plain Wave2
            PutUserPermissionsBoundary Iam Own Changes Plain Wave1
            PutUserPolicy Iam Own Changes Plain Wave1
            RejectDelegationRequest Iam Own Changes Plain Refused
            RemoveClientIDFromOpenIDConnectProvider Iam Own Changes Plain Wave3
            RemoveRoleFromInstanceProfile Iam Own Changes Plain Refused
            RemoveUserFromGroup Iam Own Changes Plain Wave1
            ResetServiceSpecificCredential Iam Own Changes Gives Refused
            ResyncMFADevice Iam Own Changes Plain Refused
            SendDelegationToken Iam Own Changes Plain Refused
            SetDefaultPolicyVersion Iam Own Changes Plain Wave1
            SetSecurityTokenServicePreferences Iam Own Changes Plain Refused
            SimulateCustomPolicy Iam Own Reads Plain Wave4
            SimulatePrincipalPolicy Iam Own Reads Plain Wave4
            TagInstanceProfile Iam Own Changes Plain Refused
            TagMFADevice Iam Own Changes Plain Refused
            TagOpenIDConnectProvider Iam Own Changes Plain Wave3
            TagPolicy Iam Own Changes Plain Wave1
            TagRole Iam Own Changes Plain Wave2
            TagSAMLProvider Iam Own Changes Plain Refused
            TagServerCertificate Iam Own Changes Plain Refused
            TagUser Iam Own Changes Plain Wave1
            UntagInstanceProfile Iam Own Changes Plain Refused
            UntagMFADevice Iam Own Changes Plain Refused
            UntagOpenIDConnectProvider Iam Own Changes Plain Wave3
            UntagPolicy Iam Own Changes Plain Wave1
            UntagRole Iam Own Changes Plain Wave2
            UntagSAMLProvider Iam Own Changes Plain Refused
            UntagServerCertificate Iam Own Changes Plain Refused
            UntagUser Iam Own Changes Plain Wave1
            UpdateAccessKey Iam Own Changes Plain Wave1
            UpdateAccountPasswordPolicy Iam Own Changes Plain Refused
            UpdateAssumeRolePolicy Iam Own Changes Plain Wave2
            UpdateDelegationRequest Iam Unasked Changes Plain Refused
            UpdateGroup Iam Own Changes Plain Wave1
            UpdateLoginProfile Iam Own Changes Takes Refused
            UpdateOpenIDConnectProvider Iam Unasked Changes Plain Refused
            UpdateOpenIDConnectProviderThumbprint Iam Own Changes Plain Wave3
            UpdateRole Iam Own Changes Plain Wave2
            UpdateRoleDescription Iam Own Changes Plain Wave2
            UpdateSAMLProvider Iam Own Changes Takes Refused
            UpdateSSHPublicKey Iam Own Changes Plain Refused
            UpdateServerCertificate Iam Own Changes Plain Refused
            UpdateServiceSpecificCredential Iam Own Changes Plain Refused
            UpdateSigningCertificate Iam Own Changes Plain Refused
            UpdateUser Iam Own Changes Plain Wave1
            UploadSSHPublicKey Iam Own Changes Plain Refused
            UploadServerCertificate Iam Own Changes Takes Refused
            UploadSigningCertificate Iam Own Changes Plain Refused

            AssumeRole Sts Own Changes Gives Wave2
            AssumeRoleWithSAML Sts Own Changes Both Refused
            AssumeRoleWithWebIdentity Sts Own Changes Both Wave3
            AssumeRoot Sts Own Changes Gives Refused
            DecodeAuthorizationMessage Sts Own Reads Plain Refused
            GetAccessKeyInfo Sts Own Reads Plain Wave1
            GetCallerIdentity Sts Unasked Reads Plain Wave1
            GetDelegatedAccessToken Sts Own Changes Both Refused
            GetFederationToken Sts Own Changes Gives Wave2
            GetScopedCredentials Sts Unasked Changes Gives Refused
            GetSessionToken Sts Unasked Changes Gives Wave1
            GetWebIdentityToken Sts Own Changes Gives Refused
            AssumeRoleWithLDAPIdentity Sts Unasked Changes Both Wave5

            CreateAccount Slipway Administrator Changes Gives Ours
            GetAccount Slipway Administrator Reads Plain Ours
            ListAccounts Slipway Administrator Reads Plain Ours
            UpdateAccount Slipway Administrator Changes Plain Ours
            DeleteAccount Slipway Administrator Changes Plain Ours
            CreateRootAccessKey Slipway Administrator Changes Gives Ours
            ListRootAccessKeys Slipway Administrator Reads Plain Ours
            DeleteRootAccessKey Slipway Administrator Changes Plain Ours
            CreateServiceKey Slipway (Of "iam:CreateAccessKey") Changes Gives Ours
            ListServiceKeys Slipway (Of "iam:ListAccessKeys") Reads Plain Ours
            ImportAccessKey Slipway Administrator Changes Takes Later
            SetDisabled Slipway Administrator Changes Plain Ours
            SetPosixIdentity Slipway Administrator Changes Plain Ours
            SetOpenIDConnectProviderClaims Slipway Administrator Changes Plain Ours
            GetOpenIDConnectProviderClaims Slipway Administrator Reads Plain Ours
            SetGroupOfDirectory Slipway Administrator Changes Plain Ours
            ListGroupsOfDirectory Slipway Administrator Reads Plain Ours
            SetBucketOwner Slipway Administrator Changes Plain Ours
            ListBucketOwners Slipway Administrator Reads Plain Ours
            ExplainRequest Slipway Administrator Reads Plain Later
            ListMasterKeys Slipway Administrator Reads Plain Later
            RewrapSecrets Slipway Administrator Changes Plain Later
        }
    };
}

pub(crate) use for_each_action;

macro_rules! table {
    ($($name:ident $service:ident $permission:tt $effect:ident $secrets:ident $state:tt)*) => {
        /// An action, by its name in the API model.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are IAM's and STS's, and ours")]
        pub enum Action { $($name,)* }

        /// The table of actions.
        pub const ACTIONS: &[ActionInfo] = &[$(ActionInfo {
            action: Action::$name,
            name: stringify!($name),
            service: Service::$service,
            permission: table!(@permission $name $service $permission),
            changes: table!(@changes $effect),
            secrets: Secrets::$secrets,
            state: table!(@state $state),
        },)*];
    };
    (@permission $name:ident Iam Own) => { Permission::Of(concat!("iam:", stringify!($name))) };
    (@permission $name:ident Sts Own) => { Permission::Of(concat!("sts:", stringify!($name))) };
    (@permission $name:ident $service:ident (Of $permission:literal)) => { Permission::Of($permission) };
    (@permission $name:ident $service:ident $permission:ident) => { Permission::$permission };
    (@changes Reads) => { false };
    (@changes Changes) => { true };
    (@state Wave1) => { State::Wave(1) };
    (@state Wave2) => { State::Wave(2) };
    (@state Wave3) => { State::Wave(3) };
    (@state Wave4) => { State::Wave(4) };
    (@state Wave5) => { State::Wave(5) };
    (@state (Empty $list:literal)) => { State::Empty($list) };
    (@state $state:ident) => { State::$state };
}

for_each_action!(table);

impl Action {
    /// Returns the action's row.
    pub const fn info(self) -> &'static ActionInfo {
        // The rows are in the order of the variants, which a test holds.
        &ACTIONS[self as usize]
    }

    /// Finds an action by the values of `Action` and `Version`.
    pub fn named(name: &str, version: &str) -> Option<Self> {
        let row = ACTIONS.iter().find(|row| row.name == name && row.service.version() == version);
        row.map(|row| row.action)
    }

    /// Returns the action that a form asks for. The error is `MissingAction` or `InvalidAction`.
    pub fn of(form: &Form<'_>) -> Result<Self, QueryError> {
        let Some(name) = form.get("Action") else {
            return Err(QueryError::new(QueryCode::MissingAction, "The parameter Action is missing."));
        };
        let version = form.get("Version");
        version.and_then(|version| Self::named(name, version)).ok_or_else(|| {
            let shown = |text: &str| text.chars().take(100).collect::<String>();
            let version = version.map_or_else(|| "NO_VERSION_SPECIFIED".to_owned(), shown);
            let message = format!("Could not find operation {} for version {version}", shown(name));
            QueryError::new(QueryCode::InvalidAction, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found() {
        for row in ACTIONS {
            assert_eq!(row.action.info().name, row.name);
            assert_eq!(Action::named(row.name, row.service.version()), Some(row.action));
        }
        assert_eq!(Action::named("CreateUser", "2011-06-15"), None);
        assert_eq!(Action::named("createuser", "2010-05-08"), None);
    }

    #[test]
    fn names_come_once() {
        let mut names: Vec<&str> = ACTIONS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        assert!(names.array_windows::<2>().all(|[left, right]| left != right));
    }

    #[test]
    fn permissions_are_actions_of_policies() {
        for row in ACTIONS {
            let is_of_policies = row.permission.action().is_some();
            assert_eq!(is_of_policies, matches!(row.permission, Permission::Of(_)), "{}", row.name);
            assert!(
                is_of_policies || row.service != Service::Iam || row.state == State::Refused,
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn the_waves_are_those_of_the_decision() {
        let count = |service, state| {
            ACTIONS.iter().filter(|row| row.service == service && row.state == state).count()
        };
        let counts =
            [1, 2, 3, 4, 5].map(|wave| [Service::Iam, Service::Sts].map(|s| count(s, State::Wave(wave))));
        assert_eq!(counts, [[54, 3], [19, 2], [10, 1], [5, 0], [0, 1]]);
        let is_model = |service| ACTIONS.iter().filter(|row| row.service == service).count();
        assert_eq!((is_model(Service::Iam), is_model(Service::Sts)), (181, 13));
    }

    #[test]
    fn a_form_asks_for_an_action() {
        let of =
            |body: &str| Action::of(&Form::parse(b"", body.as_bytes()).unwrap()).map_err(|e| e.to_string());
        assert_eq!(of("Action=GetUser&Version=2010-05-08"), Ok(Action::GetUser));
        assert_eq!(of("Action=CreateAccount&Version=slipway-1"), Ok(Action::CreateAccount));
        let none = "InvalidAction: Could not find operation GetUser for version";
        assert_eq!(of("Action=GetUser"), Err(format!("{none} NO_VERSION_SPECIFIED")));
        assert_eq!(of("Action=GetUser&Version=2011-06-15"), Err(format!("{none} 2011-06-15")));
        assert_eq!(of("Version=2010-05-08"), Err("MissingAction: The parameter Action is missing.".into()));
    }
}
