//! Makes records from the metadata that another S3 server left.

mod minio_fs;
mod proof;
mod report;
mod versitygw;
mod versitygw_grants;

pub use minio_fs::import_minio_fs;
pub use report::{ImportOptions, Imported};
pub use versitygw::import_versitygw;
pub use versitygw_grants::{BucketGrants, Grant, GrantKind, grants_by_versitygw};
