//! A limit on lines of the log about the directory, since each request may lead to one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::COMPLAINTS_A_MINUTE_MAX;

const MINUTE: Duration = Duration::from_mins(1);

// The lines say it.
const _: () = assert!(COMPLAINTS_A_MINUTE_MAX == 5);

/// A kind of lines of the log, which has a limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Complaint {
    /// The access key of an entry cannot be used.
    AccessKey,
    /// Several entries have a name.
    Name,
    /// An answer of the directory cannot be used.
    Answer,
    /// The directory does not answer.
    Away,
    /// The directory did not check a password.
    Password,
}

/// The lines that were logged within a minute.
#[derive(Debug, Default)]
pub struct Complaints(Mutex<BTreeMap<Complaint, (Instant, u32)>>);

impl Complaints {
    /// True if a line of this kind may be logged now, which then counts it.
    pub fn is_due(&self, kind: Complaint, now: Instant) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, lines) = all.entry(kind).or_insert((now, 0));
        if now.saturating_duration_since(*began) >= MINUTE {
            (*began, *lines) = (now, 0);
        }
        *lines = lines.saturating_add(1);
        *lines <= COMPLAINTS_A_MINUTE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_so_many_lines_a_minute() {
        let (complaints, now) = (Complaints::default(), Instant::now());
        let logged = |kind, at| (0..100).filter(|_| complaints.is_due(kind, at)).count();
        let most = COMPLAINTS_A_MINUTE_MAX as usize;
        assert_eq!([logged(Complaint::Name, now), logged(Complaint::Name, now)], [most, 0]);
        assert_eq!(logged(Complaint::Away, now), most);
        assert_eq!(logged(Complaint::Name, now + MINUTE.saturating_sub(Duration::from_secs(1))), 0);
        assert_eq!(logged(Complaint::Name, now + MINUTE), most);
    }
}
