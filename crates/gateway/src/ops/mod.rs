//! The operations, one file each, in folders named after what they are about.

mod bucket;
mod object;
mod operation;
mod refused;
mod slow;
mod unset;
mod upload;
mod version;

use futures_util::future::BoxFuture;
use iam::AccountId;
use s3_wire::auth::PayloadMode;
use s3_wire::headers::{expected_bucket_owner, source_expected_bucket_owner};
use s3_wire::honoured;
use s3_wire::operation::{Operation as Op, Support};
use s3_wire::{ErrorCode, Result, S3Error};

use crate::call::{Call, Permission};
use crate::reply::Reply;
use operation::Operation;

/// Steps 5 to 7 of a request's life. On the heap, since the operations' states differ much in size
/// and a connection would hold the largest.
fn run<'a, O: Operation<'a> + 'a>(call: Call<'a>) -> BoxFuture<'a, Result<Reply>> {
    Box::pin(async move {
        match prepare::<O>(&call).await {
            Ok(operation) => operation.perform(call).await,
            Err(error) => Err(call.in_bucket(error).await),
        }
    })
}

/// All that is checked before the work begins.
async fn prepare<'a, O: Operation<'a>>(call: &Call<'a>) -> Result<O> {
    let served = call.operation.info().support == Support::Full;
    if served {
        honoured::check(call.operation, call.query, call.headers, call.signed)?;
    }
    check_trailer(call)?;
    check_expected_owner(call)?;
    let operation = O::parse(call)?;
    authorize(call, operation.permissions(call)).await?;
    Ok(operation)
}

/// Only uploads have a checksum behind their body.
fn check_trailer(call: &Call<'_>) -> Result<()> {
    let trailer = matches!(call.payload, Some(PayloadMode::Streaming { trailer: true, .. }));
    if trailer && !matches!(call.operation, Op::PutObject | Op::UploadPart) {
        let message = "The value of x-amz-content-sha256 header is invalid.";
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    Ok(())
}

async fn authorize(call: &Call<'_>, permissions: Vec<Permission<'_>>) -> Result<()> {
    for permission in permissions {
        call.authorize(&permission).await?;
    }
    Ok(())
}

/// Performs the operation that was asked for.
pub fn dispatch(call: Call<'_>) -> BoxFuture<'_, Result<Reply>> {
    match answerer(call.operation) {
        Some(answer) => answer(call),
        None => run::<refused::Refused>(call),
    }
}

type Answer<'a> = fn(Call<'a>) -> BoxFuture<'a, Result<Reply>>;

/// What answers an operation; `None` if it is to be refused.
fn answerer<'a>(operation: Op) -> Option<Answer<'a>> {
    Some(match operation {
        Op::ListBuckets => run::<bucket::list::ListBuckets>,
        Op::CreateBucket => run::<bucket::create::CreateBucket>,
        Op::HeadBucket => run::<bucket::head::HeadBucket>,
        Op::DeleteBucket => run::<bucket::delete::DeleteBucket>,
        Op::GetBucketLocation => run::<bucket::location::GetBucketLocation>,
        Op::ListObjects => run::<object::list::ListObjects>,
        Op::ListObjectsV2 => run::<object::list_v2::ListObjectsV2>,
        Op::ListObjectVersions => run::<object::list_versions::ListObjectVersions>,
        Op::HeadObject => run::<object::get::HeadObject>,
        Op::GetObject => run::<object::get::GetObject>,
        Op::GetObjectAttributes => run::<object::attributes::GetObjectAttributes>,
        Op::PutObject => run::<object::put::PutObject>,
        Op::CopyObject => run::<object::copy::CopyObject>,
        Op::DeleteObject => run::<object::delete::DeleteObject>,
        Op::DeleteObjects => run::<object::delete_many::DeleteObjects>,
        Op::CreateMultipartUpload => run::<upload::create::CreateMultipartUpload>,
        Op::UploadPart => run::<upload::put_part::UploadPart>,
        Op::UploadPartCopy => run::<upload::copy_part::UploadPartCopy>,
        Op::CompleteMultipartUpload => run::<upload::complete::CompleteMultipartUpload>,
        Op::AbortMultipartUpload => run::<upload::abort::AbortMultipartUpload>,
        Op::ListParts => run::<upload::list_parts::ListParts>,
        Op::ListMultipartUploads => run::<upload::list::ListMultipartUploads>,
        other if other.info().support == Support::Unset => run::<unset::Unset>,
        _ => return None,
    })
}

/// `AccessDenied` unless each bucket belongs to the account that the client expects. What is no
/// account id at all is `InvalidBucketOwnerAWSAccountID`.
fn check_expected_owner(call: &Call<'_>) -> Result<()> {
    if !call.headers.keys().any(|name| name.as_str().ends_with("expected-bucket-owner")) {
        return Ok(());
    }
    let expected = [expected_bucket_owner(call.headers), source_expected_bucket_owner(call.headers)];
    for text in expected.into_iter().flatten() {
        let id = AccountId::new(text.trim()).map_err(|_| {
            let code = ErrorCode::InvalidBucketOwnerAWSAccountID;
            S3Error::with_message(code, format!("{} [{text}]", code.message()))
        })?;
        if id != *call.settings.identities.account().id() {
            return Err(ErrorCode::AccessDenied.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use s3_wire::operation::OPERATIONS;

    use super::*;

    #[test]
    fn what_the_table_has_as_served_is_not_refused() {
        for row in OPERATIONS {
            assert_eq!(answerer(row.operation).is_some(), row.support != Support::None, "{}", row.name);
        }
    }
}
