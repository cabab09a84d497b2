//! The directory as a gateway asks it.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use iam::{Directory, LoginError, Person, SecretText, StoreError, folded_dn};
use ldap3::Ldap as Connection;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::attempts::{Attempt, Attempts, Sent};
use super::connection::{config, connect};
use super::entry::Entry;
use super::failure::Failure;
use super::people::People;
use super::searching::{by_dn, by_name, groups};
use super::settings::{LdapSettings, Protection};
use crate::limits::{
    DIRECTORY_QUESTIONS_MAX, DIRECTORY_TIME_MAX, LOGIN_NAME_BYTES_MAX, LOGINS_MAX, PASSWORD_BYTES_MAX,
    PERSON_TIME,
};

/// The results of a bind (RFC 4511, 4.1.9): of a password that is right, and those by which it, or
/// whoever it belongs to, is refused. All others are the directory's troubles.
const SUCCESS: u32 = 0;
const REFUSALS: [u32; 5] = [19, 32, 48, 49, 53];

/// The characters of a name, as IAM's users have them.
const NAME_CHARS_MAX: usize = 64;

/// An LDAP directory.
#[derive(Debug)]
pub struct Ldap(Arc<Inner>);

struct Inner {
    settings: Arc<LdapSettings>,
    /// The password of [`LdapSettings::bind_dn`].
    password: ArcSwapOption<SecretText>,
    /// The connection that searches are made by, which many use at once.
    connection: tokio::sync::Mutex<Option<Connection>>,
    people: People,
    attempts: Attempts,
    questions: Semaphore,
    logins: Semaphore,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ldap").field("servers", &self.settings.servers).finish_non_exhaustive()
    }
}

/// The reason why the directory could not be asked, for the log.
#[derive(Debug)]
struct Trouble(Arc<str>);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the directory could not be asked: {}", self.0)
    }
}

impl std::error::Error for Trouble {}

fn unavailable(why: Arc<str>) -> StoreError {
    StoreError::Unavailable(Box::new(Trouble(why)))
}

/// Checks that the files of certificates, if TLS needs them, can be read and have some.
pub fn check(settings: &LdapSettings) -> Result<(), String> {
    let is_needed = settings.servers.iter().any(|server| settings.protection(server) != Protection::None);
    if is_needed { config(settings).map(|_| ()) } else { Ok(()) }
}

impl Ldap {
    /// Knows where the directory is. It is asked when somebody logs in.
    pub fn new(settings: LdapSettings, password: Option<SecretText>) -> Result<Self, String> {
        let attempts = Attempts::new(settings.attempts)?;
        Ok(Self(Arc::new(Inner {
            settings: Arc::new(settings),
            password: ArcSwapOption::from_pointee(password),
            connection: tokio::sync::Mutex::default(),
            people: People::new(),
            attempts,
            questions: Semaphore::new(DIRECTORY_QUESTIONS_MAX),
            logins: Semaphore::new(LOGINS_MAX),
        })))
    }

    /// Takes another password of the DN that searches are made as, for the next connection.
    pub fn set_password(&self, password: Option<SecretText>) {
        self.0.password.store(password.map(Arc::new));
    }

    /// Does something with the directory in a task of its own: it goes on if whoever waits goes
    /// away, and its panics are errors.
    async fn ask<T, F, W>(&self, work: W) -> Result<T, Arc<str>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        W: FnOnce(Arc<Inner>) -> F,
    {
        let inner = &self.0;
        if let Some(why) = inner.people.failed(Instant::now()) {
            return Err(why);
        }
        let task = tokio::spawn(timeout(DIRECTORY_TIME_MAX, work(Arc::clone(inner))));
        let why = match task.await {
            Ok(Ok(Ok(done))) => return Ok(done),
            Ok(Ok(Err(Failure::Odd(why)))) => {
                tracing::warn!(why, "the LDAP directory answered with something that cannot be used");
                return Err(why.into());
            }
            Ok(Ok(Err(Failure::Away(why)))) => why,
            Ok(Err(_)) => format!("it did not answer within {} s", DIRECTORY_TIME_MAX.as_secs()),
            Err(_) => "it sent something that is not LDAP".to_owned(),
        };
        // The next one begins with another connection, and maybe another server.
        *inner.connection.lock().await = None;
        tracing::warn!(why, "the LDAP directory cannot be reached or does not answer");
        let why = why.into();
        inner.people.fail(&why, Instant::now());
        Err(why)
    }
}

impl Inner {
    /// Returns the connection for searches, which is made if there is none.
    async fn searching(&self) -> Result<Connection, String> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = kept.as_mut()
            && !connection.is_closed()
        {
            return Ok(connection.clone());
        }
        let mut connection = connect(&self.settings).await?;
        self.bind_as_gateway(&mut connection).await?;
        Ok(kept.insert(connection).clone())
    }

    /// Binds a connection for searches.
    async fn bind_as_gateway(&self, connection: &mut Connection) -> Result<(), String> {
        let password = self.password.load_full();
        let bound = match (&self.settings.bind_dn, &self.settings.certificate) {
            (Some(dn), _) => {
                let password = password.ok_or("there is no password for --ldap-bind-dn")?;
                connection.simple_bind(dn, password.expose()).await
            }
            (None, Some(_)) => connection.sasl_external_bind().await,
            // As anybody.
            (None, None) => return Ok(()),
        };
        let bound = bound.map_err(|e| format!("the bind of the gateway itself failed: {e}"))?;
        if bound.rc == SUCCESS {
            return Ok(());
        }
        Err(format!("the gateway itself was refused: {} {}", bound.rc, bound.text))
    }

    /// Makes what is known of an entry. `None` for one that is disabled.
    async fn person(&self, entry: &Entry, began: Instant) -> Result<Option<Person>, Failure> {
        if entry.is_disabled((self.settings.now)()) {
            return Ok(None);
        }
        let name = entry.text(&self.settings.name_attribute).unwrap_or_default();
        let mut connection = self.searching().await?;
        let groups = groups(&mut connection, &self.settings, name, entry.dn()).await?;
        Ok(Some(Person {
            entry: entry.reference(),
            name: name.into(),
            unix: entry.unix(&groups.gids),
            groups: groups.dns,
            until: began + PERSON_TIME,
        }))
    }

    /// Finds somebody by the reference of an entry.
    async fn find(&self, reference: &str) -> Result<Option<Arc<Person>>, Failure> {
        let began = Instant::now();
        let Some(dn) = Entry::dn_of(reference) else { return Ok(None) };
        let mut connection = self.searching().await?;
        let entry = by_dn(&mut connection, &self.settings, dn).await?;
        // One that was made anew under the DN is somebody else.
        let found = match entry.filter(|entry| *entry.reference() == *reference) {
            Some(entry) => self.person(&entry, began).await?,
            None => None,
        };
        let found = found.filter(|person| is_name(&person.name)).map(Arc::new);
        self.people.keep(reference, found.as_ref(), Instant::now());
        Ok(found)
    }

    /// Sends a password to the directory, by a connection of its own.
    async fn bind(&self, dn: &str, password: &SecretText, mut sent: Sent) -> Result<bool, Failure> {
        let mut connection = connect(&self.settings).await?;
        sent.begin(Instant::now());
        let bound = connection.simple_bind(dn, password.expose()).await;
        let bound = bound.map_err(|e| format!("a bind failed: {e}"))?;
        // It ends by itself if it cannot be told.
        let _ = connection.unbind().await;
        match bound.rc {
            SUCCESS => {
                sent.was_right();
                Ok(true)
            }
            rc if REFUSALS.contains(&rc) => Ok(false),
            rc => {
                sent.was_not_seen();
                Err(Failure::Odd(format!("a bind failed: {rc} {}", bound.text)))
            }
        }
    }

    async fn log_in(&self, name: &str, password: &SecretText) -> Result<LoggedIn, Failure> {
        let began = Instant::now();
        let mut connection = self.searching().await?;
        let Some(entry) = by_name(&mut connection, &self.settings, name).await? else {
            return Ok(Err(LoginError::Refused));
        };
        // By the entry, which has many names: other spellings, an address.
        let sent = match self.attempts.begin(&folded_dn(entry.dn()), password, began).await {
            Attempt::Sent(sent) => sent,
            Attempt::Repeated => return Ok(Err(LoginError::Refused)),
            Attempt::TooMany => return Ok(Err(LoginError::TooOften)),
        };
        if !self.bind(entry.dn(), password, sent).await? {
            return Ok(Err(LoginError::Refused));
        }
        let Some(person) = self.person(&entry, began).await? else {
            return Ok(Err(LoginError::Refused));
        };
        if !is_name(&person.name) {
            return Ok(Err(LoginError::Unusable(
                "The entry has no name here: it needs one of 1 to 64 letters, digits and _+=,.@-.",
            )));
        }
        let person = Arc::new(person);
        self.people.keep(&person.entry, Some(&person), Instant::now());
        Ok(Ok(person))
    }
}

type LoggedIn = Result<Arc<Person>, LoginError>;

/// True for a name that a user of IAM could have.
fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c);
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(allowed)
}

#[async_trait]
impl Directory for Ldap {
    async fn by_entry(&self, entry: &str) -> Result<Option<Arc<Person>>, StoreError> {
        let people = &self.0.people;
        if let Some(known) = people.known(entry, Instant::now()) {
            return Ok(known.into());
        }
        let waited = timeout(DIRECTORY_TIME_MAX, async {
            let turn = people.turn(entry).await;
            let place = self.0.questions.acquire().await;
            (turn, place)
        });
        let Ok(_waited) = waited.await else {
            return Err(unavailable("too many others ask it".into()));
        };
        // Somebody before may have asked.
        if let Some(known) = people.known(entry, Instant::now()) {
            return Ok(known.into());
        }
        let reference = entry.to_owned();
        self.ask(|inner| async move { inner.find(&reference).await }).await.map_err(unavailable)
    }

    fn is_present(&self, person: &Person) -> bool {
        Instant::now() < person.until
    }

    async fn log_in(&self, name: &str, password: &SecretText) -> Result<Arc<Person>, LoginError> {
        // A bind with an empty password is one as nobody, which directories let everybody have.
        let is_password = (1..=PASSWORD_BYTES_MAX).contains(&password.expose().len());
        if !is_password || name.is_empty() || name.len() > LOGIN_NAME_BYTES_MAX {
            return Err(LoginError::Refused);
        }
        let Ok(_place) = timeout(DIRECTORY_TIME_MAX, self.0.logins.acquire()).await else {
            return Err(LoginError::Unavailable(unavailable("too many others log in".into())));
        };
        let (name, password) = (name.to_owned(), password.clone());
        let asked = self.ask(|inner| async move { inner.log_in(&name, &password).await }).await;
        asked.unwrap_or_else(|why| Err(LoginError::Unavailable(unavailable(why))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_users() {
        for name in ["ann", "ann.smith@lab", "a_b+c=d,e-f"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a/b", "a:b", "a*", "änn", "${x}", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
