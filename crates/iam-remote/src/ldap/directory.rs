//! The directory as a gateway asks it.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use iam::model::is_of_name;
use iam::model::limits::USER_NAME_CHARS_MAX;
use iam::{
    AccessKeyId, Credential, Directory, KeyHolder, LoginError, Person, SecretKey, SecretText, StoreError,
    folded_dn,
};
use ldap3::Ldap as Connection;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::attempts::{Attempt, Attempts, Sent};
use super::complaints::{Complaint, Complaints};
use super::connection::{config, connect};
use super::entry::Entry;
use super::failure::{Failure, result};
use super::keys::Keys;
use super::people::{Known, People};
use super::searching::{Groups, Named, by_access_key, by_dn, by_name, groups, is_only, look_at_bases};
use super::settings::{KeyAttributes, LdapSettings, Protection};
use crate::limits::{
    DIRECTORY_QUESTIONS_MAX, DIRECTORY_TIME_MAX, KEY_TIME, LOGIN_NAME_BYTES_MAX, LOGINS_MAX,
    PASSWORD_BYTES_MAX, PERSON_TIME,
};

/// The results of a bind (RFC 4511, 4.1.9): of a password that is right, and those by which it, or
/// whoever it belongs to, is refused. All others are the directory's troubles.
const SUCCESS: u32 = 0;
const REFUSALS: [u32; 5] = [19, 32, 48, 49, 53];

/// The sentence for an entry whose password is right, and whose name is of no use.
const NO_NAME: &str = "The entry has no name here: it needs a single one of 1 to 64 letters, digits and _+=,.@-, \
    which no other entry has.";

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
    keys: Keys,
    complaints: Complaints,
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
    /// Makes the directory. It is asked at logins, for sessions and for access keys.
    pub fn new(settings: LdapSettings, password: Option<SecretText>) -> Result<Self, String> {
        let attempts = Attempts::new(settings.attempts)?;
        Ok(Self(Arc::new(Inner {
            settings: Arc::new(settings),
            password: ArcSwapOption::from_pointee(password),
            connection: tokio::sync::Mutex::default(),
            people: People::new(),
            keys: Keys::new(Instant::now()),
            complaints: Complaints::default(),
            attempts,
            questions: Semaphore::new(DIRECTORY_QUESTIONS_MAX),
            logins: Semaphore::new(LOGINS_MAX),
        })))
    }

    /// Takes another password of the DN that searches are made as, for the next connection.
    pub fn set_password(&self, password: Option<SecretText>) {
        self.0.password.store(password.map(Arc::new));
    }

    /// Tries the settings: connects, binds as the gateway, and looks for the entries below which
    /// people and groups are. Fails with a sentence, after [`DIRECTORY_TIME_MAX`] at most.
    pub async fn try_settings(&self) -> Result<(), String> {
        let inner = Arc::clone(&self.0);
        let tried = in_time(async move {
            let mut connection = inner.searching().await?;
            look_at_bases(&mut connection, &inner.settings).await
        });
        tried.await.map_err(|failure| {
            let (Failure::Away(why) | Failure::Odd(why)) = failure;
            why
        })
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
        let why = match in_time(work(Arc::clone(inner))).await {
            Ok(done) => return Ok(done),
            Err(Failure::Odd(why)) => {
                if inner.may_complain(Complaint::Answer) {
                    tracing::warn!(
                        why,
                        "the LDAP directory sent an answer that cannot be used, so the login or request is refused \
                         (logged at most 5 times a minute)"
                    );
                }
                return Err(why.into());
            }
            Err(Failure::Away(why)) => why,
        };
        // The next one begins with another connection, and maybe another server.
        *inner.connection.lock().await = None;
        if inner.may_complain(Complaint::Away) {
            tracing::warn!(
                why,
                "the LDAP directory cannot be reached or does not answer: logins, and sessions that have to be \
                 looked up again, are refused until it does (logged at most 5 times a minute)"
            );
        }
        let why = why.into();
        inner.people.fail(&why, Instant::now());
        Err(why)
    }

    /// Has the directory check a password. What fails here keeps nobody else from asking: it may
    /// take its time over one entry.
    async fn send(&self, dn: &str, password: &SecretText, sent: Sent) -> Result<bool, LoginError> {
        let (inner, dn, password) = (Arc::clone(&self.0), dn.to_owned(), password.clone());
        let bound = in_time(async move { inner.bind(&dn, &password, sent).await }).await;
        bound.map_err(|failure| {
            let (Failure::Away(why) | Failure::Odd(why)) = failure;
            if self.0.may_complain(Complaint::Password) {
                tracing::warn!(
                    why,
                    "the LDAP directory has not checked a password (logged at most 5 times a minute)"
                );
            }
            away(why)
        })
    }

    /// Waits for a place among those who log in.
    async fn place(&self) -> Result<SemaphorePermit<'_>, LoginError> {
        let place = timeout(DIRECTORY_TIME_MAX, self.0.logins.acquire()).await;
        place.ok().and_then(Result::ok).ok_or_else(|| away("too many others log in"))
    }
}

/// Does something with the directory in a task of its own, for as long as that may take.
async fn in_time<T, F>(work: F) -> Result<T, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    match tokio::spawn(timeout(DIRECTORY_TIME_MAX, work)).await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(format!("it did not answer within {} s", DIRECTORY_TIME_MAX.as_secs()).into()),
        Err(_) => Err("it sent something that is not LDAP".to_owned().into()),
    }
}

fn away(why: impl Into<Arc<str>>) -> LoginError {
    LoginError::Unavailable(unavailable(why.into()))
}

impl Ldap {
    /// Asks about a key, when it is its turn. Says also whether the directory was asked: somebody
    /// before may have done so.
    async fn ask_key(
        &self,
        attributes: &KeyAttributes,
        id: &AccessKeyId,
        is_strange: bool,
    ) -> Result<(Option<Arc<KeyHolder>>, bool), StoreError> {
        let keys = &self.0.keys;
        let waited = timeout(DIRECTORY_TIME_MAX, async {
            let turn = keys.turn(id.as_str(), is_strange).await;
            if let Some(known) = keys.known(id.as_str(), Instant::now()) {
                return Err(known);
            }
            let apart = if is_strange { Some(keys.strangers.acquire().await) } else { None };
            Ok((turn, apart, self.0.questions.acquire().await))
        });
        let _places = match waited.await {
            Ok(Ok(places)) => places,
            Ok(Err(known)) => return Ok((known, false)),
            Err(_) => return Err(unavailable("too many others ask it".into())),
        };
        let (attributes, id) = (attributes.clone(), id.clone());
        let asked = self.ask(|inner| async move { inner.find_key(&attributes, &id).await }).await;
        asked.map(|found| (found, true)).map_err(unavailable)
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
        let why = result(bound.rc, &bound.text);
        Err(format!("the gateway itself was refused: {why}: check --ldap-bind-dn and its password"))
    }

    /// Makes what is known of an entry. `None` for one that is disabled; without a name for one
    /// that has several, shares its name with others, or whose name is none of IAM's.
    async fn person(&self, entry: &Entry, began: Instant) -> Result<Option<Person>, Failure> {
        if entry.is_disabled((self.settings.now)()) {
            return Ok(None);
        }
        let settings = &self.settings;
        let mut connection = self.searching().await?;
        let mut name = entry.only(&settings.name_attribute).filter(|name| is_name(name));
        if let Some(one) = name
            && !is_only(&mut connection, settings, one, entry.dn()).await?
        {
            if self.may_complain(Complaint::Name) {
                tracing::warn!(
                    name = one,
                    dn = entry.dn(),
                    "several entries of the LDAP directory have this name: nobody can log in as one of them until \
                     only one has it (logged at most 5 times a minute)"
                );
            }
            name = None;
        }
        let groups = match name {
            Some(name) => groups(&mut connection, settings, name, entry.dn()).await?,
            None => Groups::default(),
        };
        Ok(Some(Person {
            entry: entry.reference(),
            name: name.unwrap_or_default().into(),
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
        let found = found.filter(|person| !person.name.is_empty()).map(Arc::new);
        self.people.keep(reference, found.as_ref(), Instant::now());
        Ok(found)
    }

    /// Finds whose an access key is.
    async fn find_key(
        &self,
        attributes: &KeyAttributes,
        id: &AccessKeyId,
    ) -> Result<Option<Arc<KeyHolder>>, Failure> {
        let began = Instant::now();
        let mut connection = self.searching().await?;
        let found = by_access_key(&mut connection, &self.settings, attributes, id.as_str()).await?;
        let holder = match &*found {
            [] => None,
            [entry] => self.holder(entry, attributes, id, began).await?,
            [entry, ..] => {
                self.complain(entry, "another entry has the same access key: neither can be used");
                None
            }
        };
        self.keys.keep(id.as_str(), holder.as_ref(), began);
        Ok(holder)
    }

    /// Makes what is known of a key that an entry has. What a login would say of the entry counts
    /// for as long as it does for sessions.
    async fn holder(
        &self,
        entry: &Entry,
        attributes: &KeyAttributes,
        id: &AccessKeyId,
        began: Instant,
    ) -> Result<Option<Arc<KeyHolder>>, Failure> {
        if entry.is_disabled((self.settings.now)()) {
            return Ok(None);
        }
        // The directory may compare without regard to case, and has whole lists of values.
        if entry.only(&attributes.access_key) != Some(id.as_str()) {
            self.complain(entry, "its access key is none, or not the only one");
            return Ok(None);
        }
        let secret_key = entry.only(&attributes.secret_key).map(SecretKey::new);
        let Some(Ok(secret_key)) = secret_key else {
            self.complain(
                entry,
                "its secret key is none, or not the only one (8 to 128 printable characters)",
            );
            return Ok(None);
        };
        let Some(person) = self.known_person(entry, began).await? else {
            self.complain(entry, "it has no name here: 1 to 64 letters, digits and _+=,.@-");
            return Ok(None);
        };
        let credential = Credential { access_key: id.clone(), secret_key };
        Ok(Some(Arc::new(KeyHolder { person, credential, until: began + KEY_TIME })))
    }

    /// Returns what is known of an entry, or makes it. `None` for one that has no name here.
    async fn known_person(&self, entry: &Entry, began: Instant) -> Result<Option<Arc<Person>>, Failure> {
        let reference = entry.reference();
        if let Some(Known::Person(person)) = self.people.known(&reference, began) {
            return Ok(Some(person));
        }
        let made = self.person(entry, began).await?.filter(|person| !person.name.is_empty()).map(Arc::new);
        if let Some(person) = &made {
            self.people.keep(&reference, Some(person), Instant::now());
        }
        Ok(made)
    }

    /// Logs that the access key of an entry cannot be used.
    fn complain(&self, entry: &Entry, why: &str) {
        if self.may_complain(Complaint::AccessKey) {
            tracing::warn!(
                entry = entry.dn(),
                why,
                "an entry's access key cannot be used (logged at most 5 times a minute)"
            );
        }
    }

    fn may_complain(&self, kind: Complaint) -> bool {
        self.complaints.is_due(kind, Instant::now())
    }

    /// Finds the entry that somebody logs in with by a name.
    async fn find_name(&self, name: &str) -> Result<Option<Entry>, Failure> {
        let mut connection = self.searching().await?;
        match by_name(&mut connection, &self.settings, name).await? {
            Named::Nobody => Ok(None),
            Named::One(entry) => Ok(Some(entry)),
            Named::Several => {
                if self.may_complain(Complaint::Name) {
                    tracing::warn!(
                        name,
                        "several entries of the LDAP directory have this name: logins with it are refused \
                         (logged at most 5 times a minute)"
                    );
                }
                Ok(None)
            }
        }
    }

    /// Sends a password to the directory, by a connection of its own.
    async fn bind(&self, dn: &str, password: &SecretText, mut sent: Sent) -> Result<bool, Failure> {
        let mut connection = connect(&self.settings).await?;
        sent.begin(Instant::now());
        let bound = connection.simple_bind(dn, password.expose()).await;
        let bound = bound.map_err(|e| Failure::Odd(format!("a bind failed: {e}")))?;
        // It ends by itself if it cannot be told.
        let _ = connection.unbind().await;
        match bound.rc {
            SUCCESS => {
                sent.was_right();
                Ok(true)
            }
            rc if REFUSALS.contains(&rc) => {
                sent.was_wrong();
                Ok(false)
            }
            rc => {
                sent.was_not_seen();
                Err(Failure::Odd(format!("a bind failed: {}", result(rc, &bound.text))))
            }
        }
    }
}

/// True for a name that a user of IAM could have.
fn is_name(name: &str) -> bool {
    (1..=USER_NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_of_name)
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

    fn has_keys(&self) -> bool {
        self.0.settings.keys.is_some()
    }

    async fn by_access_key(&self, id: &AccessKeyId) -> Result<Option<Arc<KeyHolder>>, StoreError> {
        let Some(attributes) = &self.0.settings.keys else { return Ok(None) };
        let keys = &self.0.keys;
        if let Some(known) = keys.known(id.as_str(), Instant::now()) {
            return Ok(known);
        }
        let is_strange = keys.is_strange(id.as_str());
        if is_strange && !keys.may_ask(Instant::now()) {
            return Err(unavailable("too many unknown access keys were sent".into()));
        }
        let found = self.ask_key(attributes, id, is_strange).await;
        if is_strange && !matches!(found, Ok((None, true)) | Err(_)) {
            keys.give_back();
        }
        found.map(|(holder, _)| holder)
    }

    fn is_current(&self, holder: &KeyHolder) -> bool {
        Instant::now() < holder.until
    }

    fn notice_other(&self, id: &AccessKeyId, hour: i64) {
        if !self.0.keys.is_to_compare(id.as_str(), hour, Instant::now()) {
            return;
        }
        let (this, id) = (Self(Arc::clone(&self.0)), id.clone());
        tokio::spawn(async move {
            if let Ok(Some(holder)) = this.by_access_key(&id).await
                && this.0.keys.is_new_in_both(id.as_str())
            {
                tracing::warn!(
                    access_key = id.as_str(),
                    entry = &*holder.person.entry,
                    "an entry of the LDAP directory has the same access key as a user of this server: the entry's key is ignored"
                );
            }
        });
    }

    async fn log_in(&self, name: &str, password: &SecretText) -> Result<Arc<Person>, LoginError> {
        // A bind with an empty password is one as nobody, which directories let everybody have.
        let is_password = (1..=PASSWORD_BYTES_MAX).contains(&password.expose().len());
        if !is_password || name.is_empty() || name.len() > LOGIN_NAME_BYTES_MAX {
            return Err(LoginError::Refused(None));
        }
        let began = Instant::now();
        let place = self.place().await?;
        let name = name.to_owned();
        let found = self.ask(|inner| async move { inner.find_name(&name).await });
        let entry = found.await.map_err(away)?.ok_or(LoginError::Refused(None))?;
        drop(place);
        // By the entry, which has many names: other spellings, an address. Whoever waits for those
        // before takes no place from people of other entries.
        let of_entry = folded_dn(entry.dn());
        let turn = self.0.attempts.begin(&of_entry, password, Instant::now());
        let turn = timeout(DIRECTORY_TIME_MAX, turn).await;
        let reference = entry.reference();
        let sent = match turn.map_err(|_| away("too many others log in as the same entry"))? {
            Attempt::Sent(sent) => sent,
            Attempt::Repeated => return Err(LoginError::Refused(Some(reference))),
            Attempt::TooMany => return Err(LoginError::TooOften(reference)),
        };
        let _place = self.place().await?;
        if !self.send(entry.dn(), password, sent).await? {
            return Err(LoginError::Refused(Some(reference)));
        }
        let person = self.ask(move |inner| async move { inner.person(&entry, began).await });
        let Some(person) = person.await.map_err(away)? else {
            return Err(LoginError::Refused(Some(reference)));
        };
        if person.name.is_empty() {
            return Err(LoginError::Unusable(reference, NO_NAME));
        }
        let person = Arc::new(person);
        self.0.people.keep(&person.entry, Some(&person), Instant::now());
        Ok(person)
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
