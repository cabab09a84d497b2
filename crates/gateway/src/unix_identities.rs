//! Determines the POSIX identities of requesters (decision 0044).
//!
//! Numeric ids are in the state of identities. User names are looked up in the system's user
//! database, which may be a directory on the network, so that its answers are kept for a minute.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backend::seldom::SeldomEach;
use iam::{AccountId, Requester};
use kernel_calls::accounts::{Account, account_of};
use s3_types::{UnixAccount, UnixIdentity, UnixName};
use s3_wire::{ErrorCode, S3Error};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The time for which an answer of the system's user database is used.
const KEPT_FOR: Duration = Duration::from_mins(1);
/// The number of names that are kept.
const NAMES_MAX: usize = 10_000;
/// The number of names that are looked up at the same time.
const ASKED_MAX: usize = 2;
/// The time that a request waits for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// The reason why an identity is refused whose uid is too small.
const BELOW_MINIMUM: &str = "its uid is below --uid-min";

/// Finds the POSIX identities of requesters, by the options of the server.
#[derive(Debug)]
pub struct UnixIdentities {
    rules: Rules,
    /// The POSIX identity of anonymous requesters.
    anonymous: Option<UnixName>,
    accounts: Arc<Accounts>,
}

/// The limits on POSIX identities.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// True if file calls are made as the requesters.
    pub impersonate: bool,
    /// True if a user without a POSIX identity of its own has that of the system's user with the
    /// same name.
    pub posix_names: bool,
    /// The smallest user id that a requester may have.
    pub minimum_uid: u32,
}

/// The answers of the system's user database, by name.
#[derive(Debug)]
struct Accounts {
    kept: Mutex<HashMap<Arc<str>, Kept>>,
    asking: Arc<Semaphore>,
}

/// The answer of the system's user database about a name, and its time.
#[derive(Debug, Clone)]
struct Kept(Instant, Answer);

/// The answer of the system's user database about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Account(Arc<UnixIdentity>),
    NoSuchAccount,
}

impl UnixIdentities {
    /// Makes the search with these rules. `anonymous` is the identity of anonymous requesters.
    pub fn new(rules: Rules, anonymous: Option<UnixName>) -> Self {
        Self { rules, anonymous, accounts: Accounts::new() }
    }

    /// Returns the POSIX identity of a requester; `None` if it has none. Fails with `AccessDenied`
    /// for an identity that is not allowed, and for a name that the system does not know; with
    /// `ServiceUnavailable` if the system does not answer. The rule that a user has the identity of
    /// its own name applies only to users of the tree's account, since other accounts may give
    /// their users any names.
    pub async fn of(
        &self,
        requester: &Requester,
        tree: &AccountId,
    ) -> s3_wire::Result<Option<Arc<UnixIdentity>>> {
        let unix = match requester.session() {
            Some(session) => session.facts.unix.as_ref(),
            None => self.anonymous.as_ref(),
        };
        let found = match unix {
            None => return Ok(None),
            Some(UnixName::Ids(identity)) => Arc::clone(identity),
            Some(UnixName::User(_)) if !(self.rules.posix_names && is_of(requester, tree)) => {
                return Ok(None);
            }
            Some(UnixName::Account(name) | UnixName::User(name)) => match self.accounts.find(name).await? {
                Answer::Account(identity) => identity,
                Answer::NoSuchAccount => return Err(refuse(name, "the system has no account of this name")),
            },
        };
        // Root's ids are the operator's own, who may give files to anyone.
        if requester.is_root() && !self.rules.impersonate {
            return Ok(Some(found));
        }
        match self.rules.refusal(found.account) {
            None => Ok(Some(found)),
            Some(why) => Err(refuse(&found.account.to_string(), why)),
        }
    }
}

/// The reason why all requests of a POSIX identity would be refused.
#[derive(Debug)]
pub struct Refused {
    /// The reason, as the end of a sentence.
    pub why: String,
    /// True if the system has no account of the name, which it may have later.
    pub is_unknown: bool,
}

impl UnixIdentities {
    /// Returns the reason why the requests of a user with the identity `unix` would be refused;
    /// `None` if they would not. A name is looked up anew. Fails if the system does not answer.
    pub async fn refusal(&self, unix: &UnixName) -> s3_wire::Result<Option<Refused>> {
        let (account, whose) = match unix {
            UnixName::Ids(identity) => (identity.account, String::new()),
            UnixName::Account(name) | UnixName::User(name) => match self.accounts.find_anew(name).await? {
                Answer::Account(identity) => (identity.account, format!("{name} is {}: ", identity.account)),
                Answer::NoSuchAccount => {
                    let why = format!("the server's system has no account {name}");
                    return Ok(Some(Refused { why, is_unknown: true }));
                }
            },
        };
        let why = match self.rules.refusal(account) {
            Some(BELOW_MINIMUM) => format!("{BELOW_MINIMUM} ({}) of the server", self.rules.minimum_uid),
            Some(why) => why.to_owned(),
            None => return Ok(None),
        };
        Ok(Some(Refused { why: format!("{whose}{why}"), is_unknown: false }))
    }
}

fn is_of(requester: &Requester, account: &AccountId) -> bool {
    requester.session().is_some_and(|session| session.principal.account.id() == account)
}

impl Rules {
    /// Returns the reason why no requester may have this identity; `None` if it is allowed.
    pub fn refusal(self, account: UnixAccount) -> Option<&'static str> {
        if account.uid() == 0 || account.gid() == 0 {
            return Some("its uid or gid is 0");
        }
        (account.uid() < self.minimum_uid).then_some(BELOW_MINIMUM)
    }
}

/// Logs an identity that is refused, and returns the error.
fn refuse(whose: &str, why: &'static str) -> S3Error {
    static LOGGED: SeldomEach<String> = SeldomEach::every_minute();
    if LOGGED.is_due(whose.to_owned()) {
        tracing::warn!(
            identity = whose,
            "this identity's requests are refused, since the server cannot act as its system user: {why}"
        );
    }
    ErrorCode::AccessDenied.into()
}

impl Accounts {
    fn new() -> Arc<Self> {
        Arc::new(Self { kept: Mutex::default(), asking: Arc::new(Semaphore::new(ASKED_MAX)) })
    }

    async fn find(self: &Arc<Self>, name: &Arc<str>) -> s3_wire::Result<Answer> {
        match self.known(name, None) {
            Some(known) => Ok(known),
            None => self.find_since(name, None).await,
        }
    }

    /// Finds a name as [`Self::find`] does, by a new answer. If the system does not answer,
    /// requests go on with the one that is kept.
    async fn find_anew(self: &Arc<Self>, name: &Arc<str>) -> s3_wire::Result<Answer> {
        self.find_since(name, Some(Instant::now())).await
    }

    async fn find_since(
        self: &Arc<Self>,
        name: &Arc<str>,
        since: Option<Instant>,
    ) -> s3_wire::Result<Answer> {
        static LOGGED: SeldomEach<String> = SeldomEach::every_minute();
        let cause = match timeout(ANSWER_TIME_MAX, self.ask(name, since)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", ANSWER_TIME_MAX.as_secs()),
        };
        if LOGGED.is_due(String::from(&**name)) {
            tracing::error!(
                name = &**name,
                cause,
                "requests of this account are refused: the system's user database (NSS) did not answer for its name"
            );
        }
        Err(ErrorCode::ServiceUnavailable.into())
    }

    /// Looks a name up in the system. The answer is kept, also if the caller does not wait for it
    /// any more.
    async fn ask(self: &Arc<Self>, name: &Arc<str>, since: Option<Instant>) -> io::Result<Answer> {
        let place = Arc::clone(&self.asking).acquire_owned().await.map_err(io::Error::other)?;
        // Others may have asked meanwhile.
        if let Some(known) = self.known(name, since) {
            return Ok(known);
        }
        let (accounts, asked) = (Arc::clone(self), Arc::clone(name));
        let ask = move || {
            let _place = place;
            let found = account_of(&asked)?;
            let answer = found.as_ref().and_then(identity_of).map_or(Answer::NoSuchAccount, Answer::Account);
            accounts.keep(&asked, answer.clone());
            Ok(answer)
        };
        spawn_blocking(ask).await.map_err(io::Error::other)?
    }

    /// Returns the kept answer about a name, if it is not too old, or not from before `since`.
    fn known(&self, name: &str, since: Option<Instant>) -> Option<Answer> {
        let Kept(when, answer) = self.kept().get(name)?.clone();
        (when.elapsed() < KEPT_FOR && since.is_none_or(|since| when >= since)).then_some(answer)
    }

    fn keep(&self, name: &Arc<str>, answer: Answer) {
        let mut kept = self.kept();
        if kept.len() >= NAMES_MAX {
            kept.retain(|_, Kept(when, _)| when.elapsed() < KEPT_FOR);
        }
        if kept.len() < NAMES_MAX {
            kept.insert(Arc::clone(name), Kept(Instant::now(), answer));
        }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Arc<str>, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The identity of an account of the system. Root's group is nobody's.
pub fn identity_of(found: &Account) -> Option<Arc<UnixIdentity>> {
    let account = UnixAccount::new(found.uid, found.gid)?;
    let groups = found.groups.iter().copied().filter(|group| !matches!(*group, 0 | u32::MAX));
    Some(Arc::new(UnixIdentity { account, groups: groups.collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_are_asked_of_the_system_and_kept() {
        let (accounts, nobody) = (Accounts::new(), Arc::from("nobody"));
        for _ in 0..2 {
            let Answer::Account(found) = accounts.find(&nobody).await.unwrap() else { panic!() };
            assert_eq!(found.account.uid(), 65_534);
            assert_eq!(accounts.find(&"no-such-account".into()).await.unwrap(), Answer::NoSuchAccount);
        }
        assert_eq!(accounts.kept().len(), 2);
        let said = |when| accounts.kept().insert(Arc::clone(&nobody), Kept(when, Answer::NoSuchAccount));
        said(Instant::now());
        assert_eq!(accounts.find(&nobody).await.unwrap(), Answer::NoSuchAccount);
        said(Instant::now().checked_sub(KEPT_FOR).unwrap());
        assert!(matches!(accounts.find(&nobody).await.unwrap(), Answer::Account(_)));
    }

    #[tokio::test]
    async fn an_answer_is_kept_while_the_system_gives_no_new_one() {
        let rules = Rules { impersonate: true, posix_names: false, minimum_uid: 1_000 };
        let (found, nobody) = (UnixIdentities::new(rules, None), Arc::from("nobody"));
        found.accounts.keep(&nobody, Answer::NoSuchAccount);
        let asked = UnixName::Account(Arc::clone(&nobody));
        assert!(found.refusal(&asked).await.unwrap().is_none());
        assert!(matches!(found.accounts.find(&nobody).await.unwrap(), Answer::Account(_)));
        found.accounts.asking.close();
        assert!(found.refusal(&asked).await.is_err());
        assert!(matches!(found.accounts.find(&nobody).await.unwrap(), Answer::Account(_)));
    }

    #[test]
    fn root_and_low_ids_are_nobodys() {
        let rules = Rules { impersonate: true, posix_names: false, minimum_uid: 1_000 };
        for (uid, gid, refused) in [(1_000, 1, false), (0, 1_000, true), (1_000, 0, true), (999, 1_000, true)]
        {
            let account = UnixAccount::new(uid, gid).unwrap();
            assert_eq!(rules.refusal(account).is_some(), refused, "{account}");
        }
    }
}
