//! The answers to reads of configuration that was never set.
//!
//! Clients read configuration before they use a bucket: Terraform reads all of it, Veeam and Hadoop
//! read locks and encryption. None of it can be set here, so that each read is answered as Amazon
//! S3 answers for a new bucket. Documents and codes were recorded at Amazon S3 ("Sources" in
//! docs/decisions/0005-where-sources-disagree.md).
//!
//! There is one exception. S3 encrypts by default, and its answer says so. Bytes are not encrypted
//! here, and the answer is the 404 that S3 gave for a bucket without encryption.

use crate::error::{ErrorCode, Result, S3Error};
use crate::operation::Operation;
use crate::query::Query;
use crate::xml::{Owner, Writer};

/// A read of configuration that was never set.
#[derive(Debug, Clone, Copy)]
pub struct UnsetRequest<'a> {
    /// The operation, whose support is [`Unset`](crate::operation::Support::Unset).
    pub operation: Operation,
    /// The parameters of the request.
    pub query: &'a Query<'a>,
    /// The bucket.
    pub bucket: &'a str,
    /// The owner of the bucket and of all objects in it: a canonical user id.
    pub owner: Owner<'a>,
}

impl UnsetRequest<'_> {
    /// True if the answer depends on whether the object exists.
    pub fn asks_for_object(&self) -> bool {
        use Operation as Op;
        match self.operation {
            Op::GetObjectAcl | Op::ListObjectAnnotations => true,
            Op::GetObjectAnnotation => self.query.get_non_empty("annotationName").is_some(),
            _ => false,
        }
    }

    /// Returns the document, or the error by which S3 says that the configuration does not exist.
    ///
    /// `NotImplemented` for an operation that does not read configuration.
    pub fn answer(&self) -> Result<String> {
        use Operation as Op;
        let document = match self.operation {
            Op::GetBucketAbac => leaf("AbacStatus", "Status", "Disabled"),
            Op::GetBucketAccelerateConfiguration => empty("AccelerateConfiguration"),
            Op::GetBucketAcl | Op::GetObjectAcl => self.acl(),
            Op::GetBucketLogging => empty("BucketLoggingStatus"),
            Op::GetBucketNotificationConfiguration => empty("NotificationConfiguration"),
            Op::GetBucketRequestPayment => leaf("RequestPaymentConfiguration", "Payer", "BucketOwner"),
            Op::ListObjectAnnotations => self.annotations()?,
            _ => self.list()?,
        };
        Ok(document)
    }

    fn list(&self) -> Result<String> {
        use Operation as Op;
        let root = match self.operation {
            Op::GetBucketAnalyticsConfiguration | Op::ListBucketAnalyticsConfigurations => {
                "ListBucketAnalyticsConfigurationsResult"
            }
            Op::GetBucketIntelligentTieringConfiguration | Op::ListBucketIntelligentTieringConfigurations => {
                "ListIntelligentTieringConfigurationsResult"
            }
            Op::GetBucketInventoryConfiguration | Op::ListBucketInventoryConfigurations => {
                "ListInventoryConfigurationsResult"
            }
            Op::GetBucketMetricsConfiguration | Op::ListBucketMetricsConfigurations => {
                "ListMetricsConfigurationsResult"
            }
            _ => return Err(self.missing()),
        };
        if self.query.get_non_empty("id").is_some() {
            return Err(ErrorCode::NoSuchConfiguration.into());
        }
        let token = self.query.get("continuation-token");
        if token.is_some_and(|token| !token.is_empty()) {
            return Err(ErrorCode::MalformedContinuationToken.into());
        }
        let mut writer = Writer::document(root, 64);
        writer.text("IsTruncated", "false");
        writer.optional_text("ContinuationToken", token);
        Ok(writer.finish())
    }

    fn missing(&self) -> S3Error {
        use Operation as Op;
        let code = match self.operation {
            Op::GetBucketCors => ErrorCode::NoSuchCORSConfiguration,
            Op::GetBucketEncryption => ErrorCode::ServerSideEncryptionConfigurationNotFoundError,
            Op::GetBucketLifecycleConfiguration => ErrorCode::NoSuchLifecycleConfiguration,
            Op::GetBucketMetadataConfiguration => ErrorCode::MetadataConfigurationNotFound,
            Op::GetBucketMetadataTableConfiguration => {
                return S3Error::new(ErrorCode::V1APIsNotAllowed).detail("Method", "GET");
            }
            Op::GetBucketReplication => ErrorCode::ReplicationConfigurationNotFoundError,
            Op::GetBucketWebsite => ErrorCode::NoSuchWebsiteConfiguration,
            Op::GetObjectTorrent => {
                return S3Error::method_not_allowed(&http::Method::GET, "TORRENT", "");
            }
            Op::GetObjectAnnotation => return self.no_annotation(),
            _ => return ErrorCode::NotImplemented.into(),
        };
        S3Error::new(code).detail("BucketName", self.bucket)
    }

    fn no_annotation(&self) -> S3Error {
        match self.query.get_non_empty("annotationName") {
            None => ErrorCode::UserAnnotationNameMustBeSpecified.into(),
            Some(name) => S3Error::new(ErrorCode::NoSuchAnnotation).detail("AnnotationName", name),
        }
    }

    fn annotations(&self) -> Result<String> {
        if self.query.has("continuation-token") {
            let message = "The continuation token provided is incorrect";
            let error = S3Error::with_message(ErrorCode::InvalidArgument, message);
            return Err(error.detail("ArgumentName", "continuation-token"));
        }
        let mut writer = Writer::document("ListObjectAnnotationsOutput", 256);
        writer.empty("Annotations");
        writer.text("Bucket", self.bucket);
        writer.optional_text("AnnotationPrefix", self.query.get("annotation-prefix"));
        writer.text("AnnotationCount", "0");
        Ok(writer.finish())
    }

    /// Writes the access control list: the owner may do everything, others nothing.
    fn acl(&self) -> String {
        let mut writer = Writer::document("AccessControlPolicy", 512);
        writer.owner("Owner", self.owner);
        writer.open("AccessControlList");
        writer.open("Grant");
        writer.canonical_user("Grantee", self.owner);
        writer.text("Permission", "FULL_CONTROL");
        writer.close("Grant");
        writer.close("AccessControlList");
        writer.finish()
    }
}

fn empty(root: &'static str) -> String {
    Writer::document(root, 0).finish()
}

fn leaf(root: &'static str, name: &str, text: &str) -> String {
    let mut writer = Writer::document(root, 64);
    writer.text(name, text);
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{OPERATIONS, Support};

    fn ask(operation: Operation, query: &str) -> std::result::Result<String, &'static str> {
        let query = Query::parse(query).unwrap();
        let owner = Owner { id: "0a", display_name: None };
        UnsetRequest { operation, query: &query, bucket: "lab", owner }.answer().map_err(|e| e.code().into())
    }

    #[test]
    fn every_unset_operation_has_an_answer_and_no_other() {
        for row in OPERATIONS {
            let answer = ask(row.operation, "");
            assert_eq!(answer == Err("NotImplemented"), row.support != Support::Unset, "{}", row.name);
        }
    }

    #[test]
    fn documents_and_codes() {
        let ok = |operation| ask(operation, "").unwrap();
        assert!(ok(Operation::GetBucketLogging).contains("<BucketLoggingStatus xmlns="));
        assert!(ok(Operation::GetBucketAcl).contains(
            "<Owner><ID>0a</ID></Owner><AccessControlList><Grant><Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\"><ID>0a</ID></Grantee><Permission>FULL_CONTROL"
        ));
        assert_eq!(
            ask(Operation::GetBucketEncryption, ""),
            Err("ServerSideEncryptionConfigurationNotFoundError")
        );
        assert_eq!(ask(Operation::GetBucketMetricsConfiguration, "metrics&id=x"), Err("NoSuchConfiguration"));
        let list = Operation::ListBucketMetricsConfigurations;
        assert_eq!(ask(list, "metrics&continuation-token=x"), Err("MalformedContinuationToken"));
        assert!(ask(list, "metrics&continuation-token=").unwrap().contains("<ContinuationToken>"));
        let note = Operation::GetObjectAnnotation;
        assert_eq!(ask(note, "annotation&annotationName="), Err("UserAnnotationNameMustBeSpecified"));
        assert_eq!(ask(note, "annotation&annotationName=n"), Err("NoSuchAnnotation"));
    }
}
