//! The configuration documents of buckets (decision 0030): where they are, and what is known of
//! them.

mod change;
mod contents;
mod found;
mod place;
mod states;

pub(crate) use change::{Change, Initial, change, forget, prepare};
pub(crate) use found::document;
pub(crate) use states::States;
