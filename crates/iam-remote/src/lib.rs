//! Everything for which identities need other servers: tokens of OpenID providers, and the fetching
//! and keeping of providers' keys (docs/decisions/0072-openid-tokens.md); people in an LDAP
//! directory; and documents of identities in Vault and in buckets of S3 servers
//! (docs/decisions/0066-identities-in-vault-and-buckets.md).
//!
//! The crate knows neither accounts nor roles. The gateway asks it whether a provider has made a
//! token, and who a person is in the directory; `iam` keeps bytes in its stores.

#![forbid(unsafe_code)]

mod bucket;
mod claims;
mod exchange;
mod fetching;
mod jwt;
pub mod ldap;
pub mod limits;
mod openid;
mod place;
mod refusal;
mod secrets;
mod vault;
mod xml;

pub use bucket::Bucket;
pub use claims::{Expected, WebToken};
pub use fetching::check;
pub use jwt::{Keys, Unverified};
pub use openid::OpenId;
pub use place::{BucketPlace, StorePlace, VaultPlace};
pub use refusal::Refusal;
pub use s3_client::{ClientCertificate, Credentials, Trust};
pub use secrets::SecretsOf;
pub use vault::{Vault, VaultLogin};
