macro_rules! actions {
    ($($variant:ident $name:literal)*) => {
        /// An action that a policy allows or denies. Several operations may need the same action,
        /// and some operations need several actions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "AWS's names")]
        pub enum S3Action { $($variant,)* }

        impl S3Action {
            /// All actions, in the order of their variants.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name in policies, such as `s3:GetObject`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

// Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon S3"
// (and "for Amazon S3 Express").
actions! {
    AbortMultipartUpload "s3:AbortMultipartUpload"
    BypassGovernanceRetention "s3:BypassGovernanceRetention"
    CreateBucket "s3:CreateBucket"
    CreateBucketMetadataTableConfiguration "s3:CreateBucketMetadataTableConfiguration"
    CreateSession "s3express:CreateSession"
    DeleteBucket "s3:DeleteBucket"
    DeleteBucketMetadataTableConfiguration "s3:DeleteBucketMetadataTableConfiguration"
    DeleteBucketPolicy "s3:DeleteBucketPolicy"
    DeleteBucketWebsite "s3:DeleteBucketWebsite"
    DeleteObject "s3:DeleteObject"
    DeleteObjectAnnotation "s3:DeleteObjectAnnotation"
    DeleteObjectTagging "s3:DeleteObjectTagging"
    DeleteObjectVersion "s3:DeleteObjectVersion"
    DeleteObjectVersionTagging "s3:DeleteObjectVersionTagging"
    GetAccelerateConfiguration "s3:GetAccelerateConfiguration"
    GetAnalyticsConfiguration "s3:GetAnalyticsConfiguration"
    GetBucketAbac "s3:GetBucketAbac"
    GetBucketAcl "s3:GetBucketAcl"
    GetBucketCORS "s3:GetBucketCORS"
    GetBucketLocation "s3:GetBucketLocation"
    GetBucketLogging "s3:GetBucketLogging"
    GetBucketMetadataTableConfiguration "s3:GetBucketMetadataTableConfiguration"
    GetBucketNotification "s3:GetBucketNotification"
    GetBucketObjectLockConfiguration "s3:GetBucketObjectLockConfiguration"
    GetBucketOwnershipControls "s3:GetBucketOwnershipControls"
    GetBucketPolicy "s3:GetBucketPolicy"
    GetBucketPolicyStatus "s3:GetBucketPolicyStatus"
    GetBucketPublicAccessBlock "s3:GetBucketPublicAccessBlock"
    GetBucketRequestPayment "s3:GetBucketRequestPayment"
    GetBucketTagging "s3:GetBucketTagging"
    GetBucketVersioning "s3:GetBucketVersioning"
    GetBucketWebsite "s3:GetBucketWebsite"
    GetEncryptionConfiguration "s3:GetEncryptionConfiguration"
    GetIntelligentTieringConfiguration "s3:GetIntelligentTieringConfiguration"
    GetInventoryConfiguration "s3:GetInventoryConfiguration"
    GetLifecycleConfiguration "s3:GetLifecycleConfiguration"
    GetMetricsConfiguration "s3:GetMetricsConfiguration"
    GetObject "s3:GetObject"
    GetObjectAcl "s3:GetObjectAcl"
    GetObjectAnnotation "s3:GetObjectAnnotation"
    GetObjectAttributes "s3:GetObjectAttributes"
    GetObjectLegalHold "s3:GetObjectLegalHold"
    GetObjectRetention "s3:GetObjectRetention"
    GetObjectTagging "s3:GetObjectTagging"
    GetObjectTorrent "s3:GetObjectTorrent"
    GetObjectVersion "s3:GetObjectVersion"
    GetObjectVersionAcl "s3:GetObjectVersionAcl"
    GetObjectVersionAttributes "s3:GetObjectVersionAttributes"
    GetObjectVersionTagging "s3:GetObjectVersionTagging"
    GetObjectVersionTorrent "s3:GetObjectVersionTorrent"
    GetReplicationConfiguration "s3:GetReplicationConfiguration"
    ListAllMyBuckets "s3:ListAllMyBuckets"
    ListBucket "s3:ListBucket"
    ListBucketMultipartUploads "s3:ListBucketMultipartUploads"
    ListBucketVersions "s3:ListBucketVersions"
    ListMultipartUploadParts "s3:ListMultipartUploadParts"
    ListObjectAnnotations "s3:ListObjectAnnotations"
    PutAccelerateConfiguration "s3:PutAccelerateConfiguration"
    PutAnalyticsConfiguration "s3:PutAnalyticsConfiguration"
    PutBucketAbac "s3:PutBucketAbac"
    PutBucketAcl "s3:PutBucketAcl"
    PutBucketCORS "s3:PutBucketCORS"
    PutBucketLogging "s3:PutBucketLogging"
    PutBucketNotification "s3:PutBucketNotification"
    PutBucketObjectLockConfiguration "s3:PutBucketObjectLockConfiguration"
    PutBucketOwnershipControls "s3:PutBucketOwnershipControls"
    PutBucketPolicy "s3:PutBucketPolicy"
    PutBucketPublicAccessBlock "s3:PutBucketPublicAccessBlock"
    PutBucketRequestPayment "s3:PutBucketRequestPayment"
    PutBucketTagging "s3:PutBucketTagging"
    PutBucketVersioning "s3:PutBucketVersioning"
    PutBucketWebsite "s3:PutBucketWebsite"
    PutEncryptionConfiguration "s3:PutEncryptionConfiguration"
    PutIntelligentTieringConfiguration "s3:PutIntelligentTieringConfiguration"
    PutInventoryConfiguration "s3:PutInventoryConfiguration"
    PutLifecycleConfiguration "s3:PutLifecycleConfiguration"
    PutMetricsConfiguration "s3:PutMetricsConfiguration"
    PutObject "s3:PutObject"
    PutObjectAcl "s3:PutObjectAcl"
    PutObjectAnnotation "s3:PutObjectAnnotation"
    PutObjectLegalHold "s3:PutObjectLegalHold"
    PutObjectRetention "s3:PutObjectRetention"
    PutObjectTagging "s3:PutObjectTagging"
    PutObjectVersionAcl "s3:PutObjectVersionAcl"
    PutObjectVersionTagging "s3:PutObjectVersionTagging"
    PutReplicationConfiguration "s3:PutReplicationConfiguration"
    RestoreObject "s3:RestoreObject"
    TagResource "s3:TagResource"
    UpdateBucketMetadataAnnotationTableConfiguration "s3:UpdateBucketMetadataAnnotationTableConfiguration"
    UpdateBucketMetadataInventoryTableConfiguration "s3:UpdateBucketMetadataInventoryTableConfiguration"
    UpdateBucketMetadataJournalTableConfiguration "s3:UpdateBucketMetadataJournalTableConfiguration"
    UpdateObjectEncryption "s3:UpdateObjectEncryption"
}

impl S3Action {
    /// Returns the action that a request needs if it names a version by its id: S3 has other
    /// actions for some operations on versions.
    #[must_use]
    pub const fn of_version(self) -> Self {
        match self {
            Self::DeleteObject => Self::DeleteObjectVersion,
            Self::DeleteObjectTagging => Self::DeleteObjectVersionTagging,
            Self::GetObject => Self::GetObjectVersion,
            Self::GetObjectAcl => Self::GetObjectVersionAcl,
            Self::GetObjectAttributes => Self::GetObjectVersionAttributes,
            Self::GetObjectTagging => Self::GetObjectVersionTagging,
            Self::GetObjectTorrent => Self::GetObjectVersionTorrent,
            Self::PutObjectAcl => Self::PutObjectVersionAcl,
            Self::PutObjectTagging => Self::PutObjectVersionTagging,
            other => other,
        }
    }
}

/// A set of actions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActionSet(u128);

const _: () = assert!(S3Action::ALL.len() <= u128::BITS as usize);

impl ActionSet {
    /// The set without actions.
    pub const NONE: Self = Self(0);

    /// Returns this set with `action` added.
    #[must_use]
    pub const fn and(self, action: S3Action) -> Self {
        Self(self.0 | 1 << action as u32)
    }

    /// Returns the set of the actions that either set has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if the action is in the set.
    pub const fn has(self, action: S3Action) -> bool {
        self.0 & 1 << action as u32 != 0
    }

    /// Iterates over the actions, in the order of [`S3Action::ALL`].
    pub fn iter(self) -> impl Iterator<Item = S3Action> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let action = S3Action::ALL.get(rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(*action)
        })
    }
}

impl From<S3Action> for ActionSet {
    fn from(action: S3Action) -> Self {
        Self::NONE.and(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_added() {
        assert_eq!(ActionSet::NONE.iter().count(), 0);
        let all = S3Action::ALL.iter().fold(ActionSet::NONE, |set, action| set.and(*action));
        assert!(all.iter().eq(S3Action::ALL.iter().copied()));
        for action in S3Action::ALL {
            let one = ActionSet::from(*action);
            assert!(one.iter().eq([*action]) && one.has(*action));
            assert!(S3Action::ALL.iter().all(|other| other == action || !one.has(*other)));
        }
    }

    #[test]
    fn actions_on_versions_are_named_after_the_others() {
        let versions: Vec<_> =
            S3Action::ALL.iter().filter(|action| action.of_version() != **action).collect();
        assert_eq!(versions.len(), 9);
        for action in versions {
            assert_eq!(action.of_version().as_str(), action.as_str().replacen("Object", "ObjectVersion", 1));
        }
    }

    #[test]
    fn names_are_those_of_the_variants() {
        for action in S3Action::ALL {
            let (_, name) = action.as_str().split_once(':').unwrap();
            assert_eq!(name, format!("{action:?}"));
        }
    }
}
