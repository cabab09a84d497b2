//! The conformance tests of stores: what every store of identities must do.
//!
//! A function here panics, as a test does, if the store does something else.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "tests that other crates run")]

pub mod documents;
