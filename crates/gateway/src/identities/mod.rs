//! Where the identities are that a gateway knows
//! (docs/decisions/0041-where-identities-are-kept.md). The server does not use them yet: it knows
//! root alone.

mod in_tree;

pub use in_tree::InTree;
