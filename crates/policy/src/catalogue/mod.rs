//! The names that policies may use: actions and condition keys.

mod actions;
mod keys;

pub use actions::{Action, ActionSet, DoneWith, is_known_service};
pub use keys::{Key, KeySpec, all_keys};
