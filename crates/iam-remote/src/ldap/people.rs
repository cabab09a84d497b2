//! A cache of the directory's answers about people.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use iam::Person;

use super::turns::Turns;
use crate::limits::{FAILED_TIME, NOBODY_TIME, PEOPLE_KEPT_MAX};

/// The knowledge about an entry without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// Somebody's.
    Person(Arc<Person>),
    /// Nobody's: there is none, or it is disabled.
    Nobody,
}

impl From<Known> for Option<Arc<Person>> {
    fn from(known: Known) -> Self {
        match known {
            Known::Person(person) => Some(person),
            Known::Nobody => None,
        }
    }
}

/// An answer of the directory about an entry.
#[derive(Debug, Clone)]
enum Kept {
    Person(Arc<Person>),
    Nobody(Instant),
}

/// The directory's answers about people.
#[derive(Debug)]
pub struct People {
    kept: Mutex<HashMap<Box<str>, Kept>>,
    turns: Turns,
    failed: Mutex<Option<(Instant, Arc<str>)>>,
}

impl People {
    /// Knows nobody.
    pub fn new() -> Self {
        Self { kept: Mutex::default(), turns: Turns::new(), failed: Mutex::default() }
    }

    /// Returns what is known of an entry; `None` if the directory has to be asked.
    pub fn known(&self, entry: &str, now: Instant) -> Option<Known> {
        match self.lock().get(entry)? {
            Kept::Person(person) => (now < person.until).then(|| Known::Person(Arc::clone(person))),
            Kept::Nobody(until) => (now < *until).then_some(Known::Nobody),
        }
    }

    /// Waits for the turn to ask about an entry.
    pub async fn turn(&self, entry: &str) -> tokio::sync::MutexGuard<'_, ()> {
        self.turns.wait(entry).await
    }

    /// Takes an answer. With too many entries, those that are too old are forgotten, or else all.
    pub fn keep(&self, entry: &str, person: Option<&Arc<Person>>, now: Instant) {
        let mut kept = self.lock();
        if kept.len() >= PEOPLE_KEPT_MAX {
            kept.retain(|_, kept| match kept {
                Kept::Person(person) => now < person.until,
                Kept::Nobody(until) => now < *until,
            });
        }
        if kept.len() >= PEOPLE_KEPT_MAX {
            kept.clear();
        }
        let nobody = || Kept::Nobody(now + NOBODY_TIME);
        kept.insert(entry.into(), person.map_or_else(nobody, |person| Kept::Person(Arc::clone(person))));
    }

    /// Returns why the directory could not be asked just now.
    pub fn failed(&self, now: Instant) -> Option<Arc<str>> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (when, why) = failed.as_ref()?;
        (now.saturating_duration_since(*when) < FAILED_TIME).then(|| Arc::clone(why))
    }

    /// Notes that the directory could not be asked.
    pub fn fail(&self, why: &Arc<str>, now: Instant) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(why)));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::PERSON_TIME;

    fn person(until: Instant) -> Arc<Person> {
        let (entry, name) = ("1 cn=ann".into(), "ann".into());
        Arc::new(Person { entry, name, groups: Vec::new(), unix: None, until })
    }

    #[test]
    fn answers_are_kept_for_a_while() {
        let (people, now) = (People::new(), Instant::now());
        assert!(people.known("1 cn=ann", now).is_none());
        people.keep("1 cn=ann", Some(&person(now + PERSON_TIME)), now);
        people.keep("2 cn=bob", None, now);
        let before = |time: Duration| now + time.saturating_sub(Duration::from_secs(1));
        let known = |entry, at| people.known(entry, at).map(|known| known != Known::Nobody);
        assert_eq!(known("1 cn=ann", before(PERSON_TIME)), Some(true));
        assert_eq!(known("1 cn=ann", now + PERSON_TIME), None);
        assert_eq!(known("2 cn=bob", before(NOBODY_TIME)), Some(false));
        assert_eq!(known("2 cn=bob", now + NOBODY_TIME), None);
    }

    #[test]
    fn so_many_are_kept() {
        let (people, now) = (People::new(), Instant::now());
        for at in 0..2 * PEOPLE_KEPT_MAX {
            people.keep(&at.to_string(), None, now);
        }
        assert!(people.lock().len() <= PEOPLE_KEPT_MAX);
    }

    #[test]
    fn a_failure_counts_for_a_moment() {
        let (people, now) = (People::new(), Instant::now());
        people.fail(&"away".into(), now);
        assert_eq!(people.failed(now).as_deref(), Some("away"));
        assert_eq!(people.failed(now + FAILED_TIME), None);
    }
}
