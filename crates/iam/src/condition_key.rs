macro_rules! condition_keys {
    ($($(#[$doc:meta])* $variant:ident $name:literal)*) => {
        /// A name in the conditions of policies for which a request may have a value.
        ///
        /// Sources: "Actions, resources, and condition keys for Amazon S3" in the Service
        /// Authorization Reference, and "AWS global condition context keys" in the IAM User Guide.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ConditionKey { $($(#[$doc])* $variant,)* }

        impl ConditionKey {
            /// All condition keys.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// True if the value depends on what the operation will do, so that the operation
            /// provides it. False if the gateway knows it for every request.
            pub const fn is_of_operation(self) -> bool {
                self as u32 >= Self::Prefix as u32
            }

            /// Returns the name in policies, such as `s3:prefix`, whose case does not matter.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

condition_keys! {
    /// The client's address.
    SourceIp "aws:SourceIp"
    /// `true` for a request over TLS.
    SecureTransport "aws:SecureTransport"
    /// The time of the request, in ISO 8601.
    CurrentTime "aws:CurrentTime"
    /// The time of the request, in seconds since 1970.
    EpochTime "aws:EpochTime"
    /// The `User-Agent` header.
    UserAgent "aws:UserAgent"
    /// The `Referer` header.
    Referer "aws:Referer"
    /// The id of the account that owns the resource.
    ResourceAccount "s3:ResourceAccount"
    /// The same account, under the name of the key for all services.
    AccountOfResource "aws:ResourceAccount"
    /// The region that the request was sent to.
    RequestedRegion "aws:RequestedRegion"
    /// The version of TLS of the connection to this server: `1.2` or `1.3`.
    TlsVersion "s3:TlsVersion"
    /// The place of the signature: `REST-HEADER` or `REST-QUERY-STRING`.
    AuthType "s3:authType"
    /// The algorithm of the signature: `AWS4-HMAC-SHA256` or `AWS`.
    SignatureVersion "s3:signatureversion"
    /// The age of a presigned URL, in milliseconds; 0 for SigV2.
    SignatureAge "s3:signatureAge"
    /// The value of `x-amz-content-sha256`, if it was signed.
    ContentSha256 "s3:x-amz-content-sha256"

    /// The prefix of a listing.
    Prefix "s3:prefix"
    /// The delimiter of a listing.
    Delimiter "s3:delimiter"
    /// The number of entries on a page that a listing asks for.
    MaxKeys "s3:max-keys"
    /// The id of the version that the request names.
    VersionId "s3:VersionId"
    /// The source of a copy: `bucket/key`.
    CopySource "s3:x-amz-copy-source"
    /// The metadata directive of a copy, if it has one: `COPY` or `REPLACE`.
    MetadataDirective "s3:x-amz-metadata-directive"
    /// The canned ACL that the request asks for.
    Acl "s3:x-amz-acl"
    /// The storage class that the request asks for.
    StorageClass "s3:x-amz-storage-class"
    /// The address to which a website redirects requests for the object.
    WebsiteRedirectLocation "s3:x-amz-website-redirect-location"
    /// The ETag that the object to be replaced or deleted must have.
    IfMatch "s3:if-match"
    /// `*` if the object must not exist.
    IfNoneMatch "s3:if-none-match"
    /// `true` for a request that makes an object, `false` for one that makes a part of an upload.
    ObjectCreationOperation "s3:ObjectCreationOperation"
    /// The region that the request asks for, for a new bucket.
    LocationConstraint "s3:LocationConstraint"
    /// The rule for the ownership of objects in a new bucket.
    ObjectOwnership "s3:x-amz-object-ownership"
    /// The namespace of a new bucket's name.
    BucketNamespace "s3:x-amz-bucket-namespace"
    /// The tags that the request sets on an object: key, value, key, value, and so on
    /// ([`crate::request_tags`]). A policy asks for one of them, by its key.
    RequestObjectTag "s3:RequestObjectTag/"
    /// The keys of these tags.
    RequestObjectTagKeys "s3:RequestObjectTagKeys"
    /// The mode of the retention that the request sets: `GOVERNANCE` or `COMPLIANCE`.
    ObjectLockMode "s3:object-lock-mode"
    /// The end of that retention, in ISO 8601.
    ObjectLockRetainUntil "s3:object-lock-retain-until-date"
    /// The number of whole days until that end.
    ObjectLockRemainingDays "s3:object-lock-remaining-retention-days"
    /// The legal hold that the request sets: `ON` or `OFF`.
    ObjectLockLegalHold "s3:object-lock-legal-hold"
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_differ_in_more_than_their_case() {
        let names: HashSet<_> = ConditionKey::ALL.iter().map(|key| key.as_str().to_lowercase()).collect();
        assert_eq!(names.len(), ConditionKey::ALL.len());
    }
}
