//! The configuration documents of buckets (decision 0030): their places on disk, and the states of
//! buckets that are made from them.

mod change;
mod check;
mod contents;
#[cfg(test)]
pub(crate) mod crashes;
mod found;
#[cfg(test)]
mod races;
mod states;
mod strays;

pub(crate) use change::{Change, Initial, change, forget, hold, prepare};
pub(crate) use check::{Fault, check, finish_create_of};
pub(crate) use found::{Closed, document, keeps_versions};
pub(crate) use states::States;
