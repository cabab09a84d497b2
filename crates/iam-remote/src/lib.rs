//! Identities that others vouch for: tokens of OpenID providers, and how the keys of providers are
//! fetched and kept (docs/decisions/0042-session-tokens.md).
//!
//! It knows neither accounts nor roles: the gateway asks it whether a token is that of a provider.

#![forbid(unsafe_code)]

mod claims;
mod fetching;
mod jwt;
pub mod limits;
mod openid;
mod refusal;

pub use claims::{Expected, WebToken};
pub use fetching::check;
pub use jwt::{Keys, Unverified};
pub use openid::OpenId;
pub use refusal::Refusal;
pub use s3_client::Trust;
