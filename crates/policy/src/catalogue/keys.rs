//! The condition keys of the services that a gateway provides, and those of all services.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

/// The description of a condition key.
#[derive(Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// The name in AWS's spelling. It ends with `/` if the key of a tag follows.
    pub name: &'static str,
    /// True if a request may have several values for the key.
    pub many: bool,
}

/// The global condition keys. Source: "AWS global condition context keys" in the IAM User Guide.
const GLOBAL: &str = "
    aws:AssumedRoot aws:CalledVia[] aws:CalledViaAWSMCP aws:CalledViaFirst aws:CalledViaLast
    aws:ChatbotSourceArn aws:CurrentTime aws:Ec2InstanceSourcePrivateIPv4
    aws:Ec2InstanceSourceVpc aws:EpochTime aws:FederatedProvider aws:IsMcpServiceAction
    aws:MultiFactorAuthAge aws:MultiFactorAuthPresent aws:PrincipalAccount aws:PrincipalArn
    aws:PrincipalIsAWSService aws:PrincipalOrgID aws:PrincipalOrgPaths[]
    aws:PrincipalServiceName aws:PrincipalServiceNamesList[] aws:PrincipalTag/
    aws:PrincipalType aws:Referer aws:RequestTag/ aws:RequestedRegion aws:ResourceAccount
    aws:ResourceOrgID aws:ResourceOrgPaths[] aws:ResourceTag/ aws:SecureTransport
    aws:SourceAccount aws:SourceArn aws:SourceIdentity aws:SourceIp aws:SourceOrgID
    aws:SourceOrgPaths[] aws:SourceOwner aws:SourceVpc aws:SourceVpcArn aws:SourceVpce
    aws:TagKeys[] aws:TokenIssueTime aws:UserAgent aws:ViaAWSMCPService aws:ViaAWSService
    aws:VpcSourceIp aws:VpceAccount aws:VpceOrgID aws:VpceOrgPaths[] aws:userid aws:username
";

/// The condition keys of S3. Source of these and the following keys: Service Authorization
/// Reference, of September 2026.
const OF_S3: &str = "
    s3:AccessGrantScope s3:AccessGrantsInstanceArn s3:AccessGrantsLocationScope
    s3:AccessPointNetworkOrigin s3:AccessPointTag/ s3:BucketTag/ s3:DataAccessPointAccount
    s3:DataAccessPointArn s3:ExistingJobOperation s3:ExistingJobPriority s3:ExistingObjectTag/
    s3:InventoryAccessibleOptionalFields[] s3:JobSuspendedCause s3:ObjectCreationOperation
    s3:RequestJobOperation s3:RequestJobPriority s3:RequestObjectTag/ s3:RequestObjectTagKeys[]
    s3:ResourceAccount s3:TlsVersion s3:VersionId s3:annotation-prefix s3:authType s3:delimiter
    s3:deliverySourceArn s3:destinationRegion s3:if-match s3:if-none-match
    s3:isReplicationPauseRequest s3:LocationConstraint s3:logType s3:max-annotation-results
    s3:max-keys s3:object-lock-event-hold s3:object-lock-event-hold-duration-days
    s3:object-lock-legal-hold s3:object-lock-mode s3:object-lock-remaining-retention-days
    s3:object-lock-retain-until-date s3:prefix s3:resourceArnBeingAuthorized s3:signatureAge
    s3:signatureversion s3:x-amz-acl s3:x-amz-bucket-namespace s3:x-amz-content-sha256
    s3:x-amz-copy-source s3:x-amz-grant-full-control s3:x-amz-grant-read
    s3:x-amz-grant-read-acp s3:x-amz-grant-write s3:x-amz-grant-write-acp
    s3:x-amz-metadata-directive s3:x-amz-object-annotation-directive s3:x-amz-object-if-match
    s3:x-amz-object-ownership s3:x-amz-server-side-encryption
    s3:x-amz-server-side-encryption-aws-kms-key-id
    s3:x-amz-server-side-encryption-customer-algorithm s3:x-amz-storage-class
    s3:x-amz-website-redirect-location
";

const OF_OTHERS: &str = "
    iam:AWSServiceName iam:AccountPropertyNamespaces[] iam:AssociatedResourceArn
    iam:DelegationDuration iam:DelegationRequestOwner iam:FIDO-FIPS-140-2-certification
    iam:FIDO-FIPS-140-3-certification iam:FIDO-certification iam:NotificationChannel
    iam:OrganizationsPolicyId iam:PassedToService iam:PermissionsBoundary iam:PolicyARN
    iam:RegisterSecurityKey iam:ResourceTag/ iam:RoleTemplateARN
    iam:ServiceSpecificCredentialAgeDays iam:ServiceSpecificCredentialServiceName iam:TemplateArn
    sts:AWSServiceName sts:DurationSeconds sts:ExternalId sts:IdentityTokenAudience[]
    sts:RequestContext/ sts:RequestContextProviders[] sts:RoleAuthorizedByIdp
    sts:RoleSessionName sts:SigningAlgorithm sts:SourceIdentity sts:TaskPolicyArn
    sts:TransitiveTagKeys[]
    s3express:AccessPointNetworkOrigin s3express:AccessPointTag/
    s3express:AllAccessRestrictedToLocalZoneGroup s3express:BucketTag/
    s3express:DataAccessPointAccount s3express:DataAccessPointArn
    s3express:InventoryAccessibleOptionalFields[] s3express:LocationName
    s3express:Permissions[] s3express:ResourceAccount s3express:SessionMode
    s3express:TlsVersion s3express:authType s3express:signatureAge s3express:signatureversion
    s3express:x-amz-content-sha256 s3express:x-amz-server-side-encryption
    s3express:x-amz-server-side-encryption-aws-kms-key-id
";

/// The services of which the list has all condition keys.
const SERVICES: [&str; 5] = ["aws", "s3", "s3express", "iam", "sts"];

static SPECS: LazyLock<Vec<KeySpec>> = LazyLock::new(|| {
    let names = [GLOBAL, OF_S3, OF_OTHERS].into_iter().flat_map(str::split_whitespace);
    names
        .map(|written| match written.strip_suffix("[]") {
            Some(name) => KeySpec { name, many: true },
            None => KeySpec { name: written, many: false },
        })
        .collect()
});

static BY_NAME: LazyLock<HashMap<String, u16>> = LazyLock::new(|| {
    let numbered = SPECS.iter().zip(0..);
    numbered.map(|(spec, at)| (spec.name.to_ascii_lowercase(), at)).collect()
});

/// Returns all keys.
pub fn all_keys() -> &'static [KeySpec] {
    &SPECS
}

/// A condition key that a document names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A key in the list, by its index.
    Known(u16),
    /// A key in the list that is followed by the key of a tag: the index, and the tag's key.
    Tagged(u16, Box<str>),
    /// A key of another service or of an identity provider, in lower case.
    Foreign(Box<str>),
}

impl Key {
    /// Finds a key by its name, without regard to case. `None` if the key does not exist: the name
    /// has no service, or it is unknown and the list has all keys of its service.
    pub fn named(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        if let Some(at) = BY_NAME.get(&lower).filter(|at| !SPECS[usize::from(**at)].name.ends_with('/')) {
            return Some(Self::Known(*at));
        }
        let (service, rest) = lower.split_once(':')?;
        if SERVICES.contains(&service) {
            let slash = name.find('/')?;
            let at = BY_NAME.get(&lower[..=slash])?;
            let tag = &name[slash + 1..];
            return (!tag.is_empty()).then(|| Self::Tagged(*at, tag.into()));
        }
        let is_name = !service.is_empty() && !rest.is_empty() && name.chars().all(|c| c.is_ascii_graphic());
        is_name.then(|| Self::Foreign(lower.into()))
    }

    /// Returns the description of the key; `None` for a key of another service.
    pub fn spec(&self) -> Option<&'static KeySpec> {
        match self {
            Self::Known(at) | Self::Tagged(at, _) => SPECS.get(usize::from(*at)),
            Self::Foreign(_) => None,
        }
    }

    /// True if a request may have several values for the key.
    pub fn is_many(&self) -> bool {
        self.spec().is_some_and(|spec| spec.many)
    }

    /// True for a key whose value is a tag of the object that the request acts on.
    pub fn is_of_object(&self) -> bool {
        self.spec().is_some_and(|spec| spec.name == "s3:ExistingObjectTag/")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(name) => f.write_str(name),
            Self::Known(_) => f.write_str(self.spec().map_or("", |spec| spec.name)),
            Self::Tagged(_, tag) => write!(f, "{}{tag}", self.spec().map_or("", |spec| spec.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whatever_their_case() {
        for spec in all_keys().iter().filter(|spec| !spec.name.ends_with('/')) {
            let key = Key::named(&spec.name.to_uppercase()).unwrap();
            assert_eq!(key.spec(), Some(spec), "{}", spec.name);
            assert_eq!(key.to_string(), spec.name);
        }
        assert_eq!(BY_NAME.len(), SPECS.len());
    }

    #[test]
    fn tags_have_a_key() {
        let key = Key::named("AWS:principaltag/Team/One").unwrap();
        assert_eq!(key.to_string(), "aws:PrincipalTag/Team/One");
        assert!(Key::named("s3:ExistingObjectTag/a").unwrap().is_of_object());
        for none in
            ["aws:PrincipalTag", "aws:PrincipalTag/", "s3:prefix/", "s3:prefix/a", "aws:x", "s3:", "x"]
        {
            assert_eq!(Key::named(none), None, "{none}");
        }
    }

    #[test]
    fn keys_of_others_are_taken() {
        assert_eq!(Key::named("ec2:Region"), Some(Key::Foreign("ec2:region".into())));
        assert_eq!(Key::named("accounts.google.com:aud").unwrap().to_string(), "accounts.google.com:aud");
        for none in [":a", "a:", "a b:c"] {
            assert_eq!(Key::named(none), None, "{none}");
        }
    }
}
