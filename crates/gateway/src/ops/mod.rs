//! The operations, one file each, in folders by the kind of thing that they act on.

mod about;
mod bucket;
mod expected_owner;
mod handler;
mod object;
mod refused;
mod slow;
mod unset;
mod upload;
mod values;
mod version;

use futures_util::future::BoxFuture;
use s3_wire::auth::PayloadMode;
use s3_wire::headers::{expected_bucket_owner, source_expected_bucket_owner};
use s3_wire::honoured;
use s3_wire::operation::{Operation, Support};
use s3_wire::{ErrorCode, Result, S3Error};

use crate::access::Authorized;
use crate::call::Call;
use crate::errors::read_only;
use crate::outcome::Outcome;
use handler::Handler;
use refused::Refused;
use unset::Unset;

/// The work of an operation. It is on the heap, since the operations' states differ much in size
/// and a connection would otherwise hold room for the largest.
pub type Work<'a> = BoxFuture<'a, Result<Outcome>>;

/// Reads the input of a request, and begins its work.
fn begin<'a, H: Handler<'a> + 'a>(call: Call<'a>) -> Result<Work<'a>> {
    let (handler, storage) = prepare::<H>(&call)?;
    Ok(Box::pin(handler.perform(call, storage)))
}

/// Makes all checks that precede the work.
fn prepare<'a, H: Handler<'a>>(call: &Call<'a>) -> Result<(H, Authorized<'a>)> {
    let served = call.operation.info().support == Support::Served;
    if served {
        honoured::check(call.operation, call.query, call.headers, call.signed)?;
    }
    check_trailer(call)?;
    check_expected_owner(call)?;
    let handler = H::parse(call)?;
    let values = |key| handler.about().value(key).or_else(|| handler.value(call, key));
    let storage = call.authorize(call.subject(), handler.needs(call), &values)?;
    // Before its body is read.
    if served && !call.operation.info().method.is_read() && !call.gateway.storage.capabilities().writes {
        return Err(read_only());
    }
    Ok((handler, storage))
}

/// Refuses trailing checksums on operations other than uploads.
fn check_trailer(call: &Call<'_>) -> Result<()> {
    let trailer = matches!(call.payload, Some(PayloadMode::Streaming { trailer: true, .. }));
    if trailer && !matches!(call.operation, Operation::PutObject | Operation::UploadPart) {
        let message = "The value of x-amz-content-sha256 header is invalid.";
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    Ok(())
}

/// The handlers of all served operations, each with the name of its operation.
mod handlers {
    pub use super::bucket::{
        create::CreateBucket,
        delete::DeleteBucket,
        head::HeadBucket,
        list::ListBuckets,
        location::GetBucketLocation,
        object_lock::{GetObjectLockConfiguration, PutObjectLockConfiguration},
        ownership_controls::{GetBucketOwnershipControls, PutBucketOwnershipControls},
        policy::{DeleteBucketPolicy, GetBucketPolicy, GetBucketPolicyStatus, PutBucketPolicy},
        public_access_block::{DeletePublicAccessBlock, GetPublicAccessBlock, PutPublicAccessBlock},
        tagging::{DeleteBucketTagging, GetBucketTagging, PutBucketTagging},
        versioning::{GetBucketVersioning, PutBucketVersioning},
    };
    pub use super::object::{
        attributes::GetObjectAttributes,
        copy::CopyObject,
        delete::DeleteObject,
        delete_many::DeleteObjects,
        get::{GetObject, HeadObject},
        list::ListObjects,
        list_v2::ListObjectsV2,
        list_versions::ListObjectVersions,
        locks::{GetObjectLegalHold, GetObjectRetention, PutObjectLegalHold, PutObjectRetention},
        put::PutObject,
        tagging::{DeleteObjectTagging, GetObjectTagging, PutObjectTagging},
    };
    pub use super::upload::{
        abort::AbortMultipartUpload, complete::CompleteMultipartUpload, copy_part::UploadPartCopy,
        create::CreateMultipartUpload, list::ListMultipartUploads, list_parts::ListParts,
        put_part::UploadPart,
    };
}

macro_rules! dispatch {
    ($($name:ident $method:ident $shape:ident $selector:expr, $action:ident $support:ident)*) => {
        /// Makes all checks that precede the work, and begins the operation that the request asks
        /// for.
        pub fn dispatch(call: Call<'_>) -> Result<Work<'_>> {
            match call.operation { $(Operation::$name => dispatch!(@ $support $name)(call),)* }
        }
    };
    (@ served $name:ident) => { begin::<handlers::$name> };
    (@ unset $name:ident) => { begin::<Unset> };
    (@ refused $name:ident) => { begin::<Refused> };
}

s3_wire::for_each_operation!(dispatch);

/// Fails with `AccessDenied` unless the bucket belongs to the account that the client expects. A
/// value that cannot be an account id is `InvalidBucketOwnerAWSAccountID`, also for the source of a
/// copy. The owner of the source is compared later, when its bucket is known.
fn check_expected_owner(call: &Call<'_>) -> Result<()> {
    if !call.headers.keys().any(|name| name.as_str().ends_with("expected-bucket-owner")) {
        return Ok(());
    }
    expected_owner::check(expected_bucket_owner(call.headers), call.account())?;
    source_expected_bucket_owner(call.headers).map_or(Ok(()), |text| expected_owner::id(&text).map(drop))
}
