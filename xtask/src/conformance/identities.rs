//! The identities that ceph/s3-tests signs with, made in the tree of the server that it is run
//! against.

use std::path::Path;
use std::sync::Arc;

use gateway::identities::{InTree, SystemClock};
use iam::model::{
    AccountDocument, Context, Holder, IamError, KeyOwner, Name, NewKey, NewUser, PolicyArn, Tags,
};
use iam::{
    AccessKeyId, Account, AccountId, Credential, MasterKeys, Principal, Registry, RootIdentity, SecretKey,
};

use super::server::{ACCESS_KEY, ACCOUNT_ID, MASTER_KEY, SECRET_KEY};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Somebody with a key.
#[derive(Clone)]
pub struct Identity {
    pub access_key: String,
    pub secret_key: String,
    pub account: Account,
}

/// The identities of the suite's sections. `iam` puts policies on the user `s3 alt`, and makes the
/// roles that this one assumes: both are users of one account. All others are strangers to each
/// other, and the last two the root users of their accounts. No section is the key that the server
/// was given: it is denied nothing, whatever a policy says.
pub struct Identities {
    pub main: Identity,
    pub alt: Identity,
    pub tenant: Identity,
    pub iam: Identity,
    pub iam_root: Identity,
    pub iam_alt_root: Identity,
}

impl Identities {
    /// Makes them, as a second gateway of the tree `data`.
    pub fn make(data: &Path) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| e.to_string())?;
        runtime.block_on(make(data)).map_err(|e| format!("cannot make identities: {e}"))
    }

    /// One that is known to nobody, for a server that asks nobody who he is.
    pub fn of_nobody() -> Result<Self, String> {
        let account = Account::new(AccountId::new(ACCOUNT_ID).map_err(|e| e.to_string())?);
        let nobody = || Identity {
            access_key: ACCESS_KEY.to_owned(),
            secret_key: SECRET_KEY.to_owned(),
            account: account.clone(),
        };
        Ok(Self {
            main: nobody(),
            alt: nobody(),
            tenant: nobody(),
            iam: nobody(),
            iam_root: nobody(),
            iam_alt_root: nobody(),
        })
    }
}

async fn make(data: &Path) -> Outcome<Identities> {
    let own = AccountId::new(ACCOUNT_ID)?;
    let credential =
        Credential { access_key: AccessKeyId::new(ACCESS_KEY)?, secret_key: SecretKey::new(SECRET_KEY)? };
    let root = RootIdentity::new(Principal::root(Arc::new(Account::new(own.clone())), None), credential);
    let documents = Arc::new(InTree::open(data)?);
    let clock = Arc::new(SystemClock::start());
    let registry = Registry::open(documents, Some(MasterKeys::read(MASTER_KEY)?), &root, clock).await?;
    // That of the tree, since others have no OpenID providers by which anybody could log in.
    let shared = own;
    // ACLs know somebody by an account's canonical id, and the suite has one id for either use.
    let alt = Account::new(shared.clone()).canonical_id().to_owned();
    Ok(Identities {
        main: user(&registry, &registry.create_account("main").await?, "main").await?,
        alt: user(&registry, &shared, &alt).await?,
        tenant: user(&registry, &registry.create_account("tenant").await?, "tenant").await?,
        iam: user(&registry, &shared, "iam").await?,
        iam_root: key(&registry, &registry.create_account("root").await?, KeyOwner::Root).await?,
        iam_alt_root: key(&registry, &registry.create_account("alt root").await?, KeyOwner::Root).await?,
    })
}

/// Makes a user who may do anything that belongs to its account.
async fn user(registry: &Registry, account: &AccountId, name: &str) -> Outcome<Identity> {
    let name = Name::new(name)?;
    let all = PolicyArn::new("arn:aws:iam::aws:policy/AdministratorAccess")?;
    let holder = Holder::User(name.clone());
    let new =
        NewUser { name: name.clone(), path: iam::model::Path::root(), boundary: None, tags: Tags::new() };
    let create = |document: &mut AccountDocument, cx: &Context<'_>| -> Result<(), IamError> {
        document.create_user(&new, cx)?;
        document.attach_policy(&holder, &all)
    };
    registry.change(account, &create).await?;
    key(registry, account, KeyOwner::User(name)).await
}

async fn key(registry: &Registry, account: &AccountId, owner: KeyOwner) -> Outcome<Identity> {
    let new = NewKey { owner, expires: None, policy: None, description: None };
    let create = |document: &mut AccountDocument, cx: &Context<'_>| document.create_access_key(&new, cx);
    let made = registry.change(account, &create).await?;
    Ok(Identity {
        access_key: made.access_key.to_string(),
        secret_key: made.secret_key.expose().to_owned(),
        account: Account::new(account.clone()),
    })
}
