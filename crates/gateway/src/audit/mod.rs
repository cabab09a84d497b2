//! The audit log: one line for each decision about a permission (docs/decisions/0057-audit-log.md).

mod line;
mod log;
#[cfg(test)]
mod tests;
mod trail;

pub use line::{DirectorySubject, Named};
pub use log::AuditLog;
pub use trail::{NoPolicy, Refusal, Trail};
