//! The conformance tests of stores: what every store of identities must do.
//!
//! If the store errs, a function here panics, like any test.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "tests that other crates run")]

pub mod documents;
