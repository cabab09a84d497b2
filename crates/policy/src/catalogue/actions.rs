//! The actions of the services that a gateway provides.

use std::fmt;
use std::sync::LazyLock;

use s3_types::S3Action;

/// The kind of resource that an action of S3 is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoneWith {
    /// A bucket.
    Bucket,
    /// An object.
    Object,
    /// Something that is neither a bucket nor an object. For some of these actions it may also be a
    /// bucket.
    Other,
}

/// The actions of one service that are done with the same kind of resource.
struct Group {
    service: &'static str,
    with: DoneWith,
    names: &'static str,
}

/// The actions. Source: Service Authorization Reference, "Actions, resources, and condition keys"
/// for AWS Identity and Access Management, Amazon S3, Amazon S3 Express and AWS Security Token
/// Service, of September 2026.
const GROUPS: &[Group] = &[
    Group {
        service: "iam",
        with: DoneWith::Other,
        names: "
            AcceptDelegationRequest AddClientIDToOpenIDConnectProvider
            AddRoleToInstanceProfile AddUserToGroup AssociateDelegationRequest
            AttachGroupPolicy AttachRolePolicy AttachUserPolicy ChangePassword
            CreateAccessKey CreateAccountAlias CreateDelegationRequest CreateGroup
            CreateInstanceProfile CreateLoginProfile CreateOpenIDConnectProvider
            CreatePolicy CreatePolicyVersion CreateRole CreateSAMLProvider
            CreateServiceLinkedRole CreateServiceSpecificCredential CreateUser
            CreateVirtualMFADevice DeactivateMFADevice DeleteAccessKey DeleteAccountAlias
            DeleteAccountPasswordPolicy DeleteCloudFrontPublicKey DeleteGroup
            DeleteGroupPolicy DeleteInstanceProfile DeleteLoginProfile
            DeleteOpenIDConnectProvider DeletePolicy DeletePolicyVersion DeleteRole
            DeleteRolePermissionsBoundary DeleteRolePolicy DeleteSAMLProvider
            DeleteSSHPublicKey DeleteServerCertificate DeleteServiceLinkedRole
            DeleteServiceSpecificCredential DeleteSigningCertificate DeleteUser
            DeleteUserPermissionsBoundary DeleteUserPolicy DeleteVirtualMFADevice
            DetachGroupPolicy DetachRolePolicy DetachUserPolicy
            DisableOrganizationsRootCredentialsManagement DisableOrganizationsRootSessions
            DisableOutboundWebIdentityFederation EnableMFADevice
            EnableOrganizationsRootCredentialsManagement EnableOrganizationsRootSessions
            EnableOutboundWebIdentityFederation GenerateCredentialReport
            GenerateOrganizationsAccessReport GenerateServiceLastAccessedDetails
            GetAccessKeyLastUsed GetAccountAuthorizationDetails GetAccountEmailAddress
            GetAccountName GetAccountPasswordPolicy GetAccountProperties GetAccountSummary
            GetCloudFrontPublicKey GetContextKeysForCustomPolicy
            GetContextKeysForPrincipalPolicy GetCredentialReport GetDelegationRequest
            GetGroup GetGroupPolicy GetHumanReadableSummary GetInstanceProfile
            GetLoginProfile GetMFADevice GetOpenIDConnectProvider
            GetOrganizationsAccessReport GetOutboundWebIdentityFederationInfo GetPolicy
            GetPolicyVersion GetRole GetRolePolicy GetRoleTemplateVersion GetSAMLProvider
            GetSSHPublicKey GetServerCertificate GetServiceLastAccessedDetails
            GetServiceLastAccessedDetailsWithEntities GetServiceLinkedRoleDeletionStatus
            GetUser GetUserPolicy ListAccessKeys ListAccountAliases
            ListAttachedGroupPolicies ListAttachedRolePolicies ListAttachedUserPolicies
            ListCloudFrontPublicKeys ListDelegationRequests ListEntitiesForPolicy
            ListGroupPolicies ListGroups ListGroupsForUser ListInstanceProfileTags
            ListInstanceProfiles ListInstanceProfilesForRole ListMFADeviceTags
            ListMFADevices ListOpenIDConnectProviderTags ListOpenIDConnectProviders
            ListOrganizationsFeatures ListPolicies ListPoliciesGrantingServiceAccess
            ListPolicyTags ListPolicyVersions ListRolePolicies ListRoleTags ListRoles
            ListSAMLProviderTags ListSAMLProviders ListSSHPublicKeys
            ListSTSRegionalEndpointsStatus ListServerCertificateTags
            ListServerCertificates ListServiceSpecificCredentials ListSigningCertificates
            ListUserPolicies ListUserTags ListUsers ListVirtualMFADevices PassRole
            PutAccountProperties PutGroupPolicy PutRolePermissionsBoundary PutRolePolicy
            PutUserPermissionsBoundary PutUserPolicy RejectDelegationRequest
            RemoveClientIDFromOpenIDConnectProvider RemoveRoleFromInstanceProfile
            RemoveUserFromGroup ResetServiceSpecificCredential ResyncMFADevice
            SendDelegationToken SetDefaultPolicyVersion SetSTSRegionalEndpointStatus
            SetSecurityTokenServicePreferences SimulateCustomPolicy
            SimulatePrincipalPolicy TagInstanceProfile TagMFADevice
            TagOpenIDConnectProvider TagPolicy TagRole TagSAMLProvider
            TagServerCertificate TagUser UntagInstanceProfile UntagMFADevice
            UntagOpenIDConnectProvider UntagPolicy UntagRole UntagSAMLProvider
            UntagServerCertificate UntagUser UpdateAccessKey UpdateAccountEmailAddress
            UpdateAccountName UpdateAccountPasswordPolicy UpdateAssumeRolePolicy
            UpdateCloudFrontPublicKey UpdateGroup UpdateLoginProfile
            UpdateOpenIDConnectProviderThumbprint UpdateRole UpdateRoleDescription
            UpdateSAMLProvider UpdateSSHPublicKey UpdateServerCertificate
            UpdateServiceSpecificCredential UpdateSigningCertificate UpdateUser
            UploadCloudFrontPublicKey UploadSSHPublicKey UploadServerCertificate
            UploadSigningCertificate
        ",
    },
    Group {
        service: "s3",
        with: DoneWith::Object,
        names: "
            AbortMultipartUpload BypassGovernanceRetention DeleteObject
            DeleteObjectAnnotation DeleteObjectTagging DeleteObjectVersion
            DeleteObjectVersionAnnotation DeleteObjectVersionTagging GetObject
            GetObjectAcl GetObjectAnnotation GetObjectAttributes GetObjectLegalHold
            GetObjectRetention GetObjectTagging GetObjectTorrent GetObjectVersion
            GetObjectVersionAcl GetObjectVersionAnnotation
            GetObjectVersionAnnotationForReplication GetObjectVersionAttributes
            GetObjectVersionForReplication GetObjectVersionTagging GetObjectVersionTorrent
            InitiateReplication ListMultipartUploadParts ListObjectAnnotations
            ListObjectVersionAnnotations ObjectOwnerOverrideToBucketOwner PutObject
            PutObjectAcl PutObjectAnnotation PutObjectLegalHold PutObjectRetention
            PutObjectTagging PutObjectVersionAcl PutObjectVersionAnnotation
            PutObjectVersionTagging ReplicateDelete ReplicateObject
            ReplicateObjectAnnotation ReplicateTags RestoreObject UpdateObjectEncryption
        ",
    },
    Group {
        service: "s3",
        with: DoneWith::Bucket,
        names: "
            AllowVendedLogDeliveryForResource CreateBucket
            CreateBucketMetadataTableConfiguration DeleteBucket
            DeleteBucketMetadataTableConfiguration DeleteBucketPolicy DeleteBucketWebsite
            GetAccelerateConfiguration GetAnalyticsConfiguration GetBucketAbac
            GetBucketAcl GetBucketCORS GetBucketLocation GetBucketLogging
            GetBucketMetadataTableConfiguration GetBucketNotification
            GetBucketObjectLockConfiguration GetBucketOwnershipControls GetBucketPolicy
            GetBucketPolicyStatus GetBucketPublicAccessBlock GetBucketRequestPayment
            GetBucketTagging GetBucketVersioning GetBucketWebsite
            GetEncryptionConfiguration GetIntelligentTieringConfiguration
            GetInventoryConfiguration GetLifecycleConfiguration GetMetricsConfiguration
            GetReplicationConfiguration ListBucket ListBucketMultipartUploads
            ListBucketVersions ListTagsForResource PauseReplication
            PutAccelerateConfiguration PutAnalyticsConfiguration PutBucketAbac
            PutBucketAcl PutBucketCORS PutBucketLogging PutBucketNotification
            PutBucketObjectLockConfiguration PutBucketOwnershipControls PutBucketPolicy
            PutBucketPublicAccessBlock PutBucketRequestPayment PutBucketTagging
            PutBucketVersioning PutBucketWebsite PutEncryptionConfiguration
            PutIntelligentTieringConfiguration PutInventoryConfiguration
            PutLifecycleConfiguration PutMetricsConfiguration PutReplicationConfiguration
            TagResource UntagResource UpdateBucketMetadataAnnotationTableConfiguration
            UpdateBucketMetadataInventoryTableConfiguration
            UpdateBucketMetadataJournalTableConfiguration
        ",
    },
    Group {
        service: "s3",
        with: DoneWith::Other,
        names: "
            AssociateAccessGrantsIdentityCenter CreateAccessGrant
            CreateAccessGrantsInstance CreateAccessGrantsLocation CreateAccessPoint
            CreateAccessPointForObjectLambda CreateJob CreateMultiRegionAccessPoint
            CreateStorageLensGroup DeleteAccessGrant DeleteAccessGrantsInstance
            DeleteAccessGrantsInstanceResourcePolicy DeleteAccessGrantsLocation
            DeleteAccessPoint DeleteAccessPointForObjectLambda DeleteAccessPointPolicy
            DeleteAccessPointPolicyForObjectLambda DeleteJobTagging
            DeleteMultiRegionAccessPoint DeleteStorageLensConfiguration
            DeleteStorageLensConfigurationTagging DeleteStorageLensGroup DescribeJob
            DescribeMultiRegionAccessPointOperation DissociateAccessGrantsIdentityCenter
            GetAccessGrant GetAccessGrantsInstance GetAccessGrantsInstanceForPrefix
            GetAccessGrantsInstanceResourcePolicy GetAccessGrantsLocation GetAccessPoint
            GetAccessPointConfigurationForObjectLambda GetAccessPointForObjectLambda
            GetAccessPointPolicy GetAccessPointPolicyForObjectLambda
            GetAccessPointPolicyStatus GetAccessPointPolicyStatusForObjectLambda
            GetAccountPublicAccessBlock GetDataAccess GetJobTagging
            GetMultiRegionAccessPoint GetMultiRegionAccessPointPolicy
            GetMultiRegionAccessPointPolicyStatus GetMultiRegionAccessPointRoutes
            GetStorageLensConfiguration GetStorageLensConfigurationTagging
            GetStorageLensDashboard GetStorageLensGroup ListAccessGrants
            ListAccessGrantsInstances ListAccessGrantsLocations ListAccessPoints
            ListAccessPointsForObjectLambda ListAllMyBuckets ListCallerAccessGrants
            ListJobs ListMultiRegionAccessPoints ListStorageLensConfigurations
            ListStorageLensGroups PutAccessGrantsInstanceResourcePolicy
            PutAccessPointConfigurationForObjectLambda PutAccessPointPolicy
            PutAccessPointPolicyForObjectLambda PutAccessPointPublicAccessBlock
            PutAccountPublicAccessBlock PutJobTagging PutMultiRegionAccessPointPolicy
            PutStorageLensConfiguration PutStorageLensConfigurationTagging
            SubmitMultiRegionAccessPointRoutes UpdateAccessGrantsLocation
            UpdateJobPriority UpdateJobStatus UpdateStorageLensGroup
        ",
    },
    Group {
        service: "s3express",
        with: DoneWith::Other,
        names: "
            CreateAccessPoint CreateBucket CreateSession DeleteAccessPoint
            DeleteAccessPointPolicy DeleteAccessPointScope DeleteBucket DeleteBucketPolicy
            GetAccessPoint GetAccessPointPolicy GetAccessPointScope GetBucketPolicy
            GetEncryptionConfiguration GetInventoryConfiguration GetLifecycleConfiguration
            GetMetricsConfiguration ListAccessPointsForDirectoryBuckets
            ListAllMyDirectoryBuckets ListTagsForResource PutAccessPointPolicy
            PutAccessPointScope PutBucketPolicy PutEncryptionConfiguration
            PutInventoryConfiguration PutLifecycleConfiguration PutMetricsConfiguration
            TagResource UntagResource
        ",
    },
    Group {
        service: "sts",
        with: DoneWith::Other,
        names: "
            AssumeRole AssumeRoleWithSAML AssumeRoleWithWebIdentity AssumeRoot
            DecodeAuthorizationMessage GetAccessKeyInfo GetCallerIdentity
            GetDelegatedAccessToken GetFederationToken GetServiceBearerToken
            GetSessionToken GetWebIdentityToken SetContext SetSourceIdentity
            TagGetWebIdentityToken TagSession
        ",
    },
];

/// An action, as an index into the list of all actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action(u16);

struct Known {
    service: &'static str,
    name: &'static str,
    /// The name in lower case.
    lower: String,
    with: DoneWith,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let names = |group: &'static Group| {
        let &Group { service, with, names } = group;
        let known = move |name: &'static str| Known { service, name, lower: name.to_ascii_lowercase(), with };
        names.split_whitespace().map(known)
    };
    GROUPS.iter().flat_map(names).collect()
});

/// The actions of [`S3Action`], in the order of its variants.
static OF_S3: LazyLock<Vec<Option<Action>>> =
    LazyLock::new(|| S3Action::ALL.iter().map(|action| Action::named(action.as_str())).collect());

impl Action {
    /// Finds an action by its full name, such as `s3:GetObject`, without regard to case.
    pub fn named(name: &str) -> Option<Self> {
        let (service, name) = name.split_once(':')?;
        let is_it = |known: &Known| {
            known.service.eq_ignore_ascii_case(service) && known.name.eq_ignore_ascii_case(name)
        };
        KNOWN.iter().position(is_it).and_then(|at| u16::try_from(at).ok()).map(Self)
    }

    /// Returns the action of policies for an action that S3's operations need. A test ensures that
    /// none of them is missing, so that it is never `None`.
    pub fn of_s3(action: S3Action) -> Option<Self> {
        OF_S3.get(action as usize).copied().flatten()
    }

    /// Returns all actions.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..KNOWN.len()).filter_map(|at| u16::try_from(at).ok()).map(Self)
    }

    fn known(self) -> &'static Known {
        &KNOWN[usize::from(self.0)]
    }

    /// Returns all actions of a service.
    pub fn of_service(service: &str) -> impl Iterator<Item = Self> {
        Self::all().filter(move |action| action.service().eq_ignore_ascii_case(service))
    }

    /// Returns the service, such as `s3`.
    pub fn service(self) -> &'static str {
        self.known().service
    }

    /// Returns the name without the service.
    pub fn name(self) -> &'static str {
        self.known().name
    }

    /// Returns the name without the service, in lower case.
    pub fn name_lower(self) -> &'static str {
        &self.known().lower
    }

    /// Returns the kind of resource that the action is done with.
    pub fn done_with(self) -> DoneWith {
        self.known().with
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.service(), self.name())
    }
}

/// True if the list has actions of this service: it has all of them then, and others do not exist.
pub fn is_known_service(service: &str) -> bool {
    GROUPS.iter().any(|group| group.service.eq_ignore_ascii_case(service))
}

const WORDS: usize = 7;

/// A set of actions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ActionSet([u64; WORDS]);

impl ActionSet {
    /// Returns the set of all actions.
    pub fn all() -> Self {
        Action::all().collect()
    }

    /// Returns the set of the actions that are not in this set.
    #[must_use]
    pub fn inverted(self) -> Self {
        Action::all().filter(|action| !self.has(*action)).collect()
    }

    /// Adds an action.
    pub fn add(&mut self, Action(at): Action) {
        self.0[usize::from(at / 64)] |= 1 << (at % 64);
    }

    /// True if the action is in the set.
    pub const fn has(&self, Action(at): Action) -> bool {
        self.0[(at / 64) as usize] & 1 << (at % 64) != 0
    }

    /// Returns the actions of the set.
    pub fn iter(&self) -> impl Iterator<Item = Action> + '_ {
        Action::all().filter(|action| self.has(*action))
    }
}

impl FromIterator<Action> for ActionSet {
    fn from_iter<T: IntoIterator<Item = Action>>(actions: T) -> Self {
        let mut set = Self::default();
        actions.into_iter().for_each(|action| set.add(action));
        set
    }
}

impl fmt::Debug for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|action| action.to_string())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_a_bit() {
        assert!(KNOWN.len() <= WORDS * 64, "{}", KNOWN.len());
        assert_eq!(ActionSet::all().iter().count(), KNOWN.len());
        assert_eq!(ActionSet::all().inverted(), ActionSet::default());
    }

    #[test]
    fn each_is_there_once_and_is_found_by_its_name() {
        for action in Action::all() {
            assert_eq!(Action::named(&action.to_string()), Some(action));
            assert_eq!(Action::named(&action.to_string().to_uppercase()), Some(action));
        }
        assert_eq!(Action::named("s3:GetObjects"), None);
        assert_eq!(Action::named("GetObject"), None);
    }

    #[test]
    fn what_operations_ask_for_is_in_the_list() {
        for action in S3Action::ALL {
            assert_eq!(
                Action::of_s3(*action).map(|action| action.to_string()).as_deref(),
                Some(action.as_str())
            );
        }
    }
}
