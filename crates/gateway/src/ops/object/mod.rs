//! Operations on objects.

pub mod attributes;
pub mod copy;
pub mod delete;
pub mod delete_many;
pub mod get;
pub mod list;
pub mod list_v2;
pub mod list_versions;
pub mod put;

use s3_wire::Result;

use crate::pipeline::Call;

/// What was found when a request was read, told as S3 tells it where it is an error: once the bucket is known to exist.
pub async fn after_bucket<T>(call: &Call<'_>, read: Result<T>) -> Result<T> {
    if read.is_err() {
        let (backend, cx) = (call.backend(), call.backend_context());
        backend.head_bucket(&cx, call.bucket()?).await.map_err(call.failed())?;
    }
    read
}
