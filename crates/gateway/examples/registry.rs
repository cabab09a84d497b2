//! Changes the identities of a tree as one of its gateways does, for tests: opens the registry of
//! DIR for the account ACCOUNT, with the master keys in `SLIPWAY_MASTER_KEY`, performs a line of
//! standard input after the other (`create-user alice`), and answers each with one line, once the
//! change was acknowledged.

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use gateway::identities::{InTree, SystemClock};
use iam::model::{
    AccountDocument, Context, Document, Holder, IamError, KeyOwner, KeyStatus, Name, NewKey, NewUser,
    Path as IamPath, Posix, Tags,
};

use iam::{
    AccessKeyId, Account, AccountId, Credential, MasterKeys, Principal, Registry, RootIdentity, SecretKey,
};

type Outcome = Result<String, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(account)) = (arguments.next(), arguments.next()) else {
        return Err("usage: registry DIR ACCOUNT".into());
    };
    let account = AccountId::new(&account).map_err(|e| e.to_string())?;
    let keys = std::env::var("SLIPWAY_MASTER_KEY").ok().map(|text| MasterKeys::read(&text)).transpose()?;
    // Nobody signs with it.
    let credential = Credential {
        access_key: AccessKeyId::new("no-key-of-anybody").map_err(|e| e.to_string())?,
        secret_key: SecretKey::new("no-secret-of-anybody").map_err(|e| e.to_string())?,
    };
    let root = RootIdentity::new(Principal::root(Arc::new(Account::new(account.clone())), None), credential);
    let documents = Arc::new(InTree::open(Path::new(&dir))?);
    let registry = Registry::open(documents, keys, &root, Arc::new(SystemClock::start())).await?;
    for line in std::io::stdin().lock().lines() {
        let answer = perform(&registry, &account, &line?).await.unwrap_or_else(|e| format!("error {e}"));
        let mut output = std::io::stdout();
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

/// Performs a line: a command, the name of a user, and what else it needs.
async fn perform(registry: &Registry, account: &AccountId, line: &str) -> Outcome {
    let mut words = line.splitn(3, ' ');
    let (command, user, rest) = (words.next(), words.next(), words.next().unwrap_or_default());
    let (command, user) = (command.ok_or("no command")?, Name::new(user.ok_or("no user")?)?);
    let key = || AccessKeyId::new(rest).map_err(|e| e.to_string());
    let owner = KeyOwner::User(user.clone());
    match command {
        "create-user" => {
            let new = NewUser { name: user, path: IamPath::root(), boundary: None, tags: Tags::new() };
            change(registry, account, |document, cx| document.create_user(&new, cx).map(drop)).await
        }
        "create-key" => {
            let new = NewKey { owner, expires: None, policy: None, description: None };
            let create =
                |document: &mut AccountDocument, cx: &Context<'_>| document.create_access_key(&new, cx);
            let made = registry.change(account, &create).await?;
            Ok(format!("{} {}", made.access_key, made.secret_key.expose()))
        }
        "disable-key" | "enable-key" => {
            let key = key()?;
            let status = if command == "enable-key" { KeyStatus::Active } else { KeyStatus::Inactive };
            change(registry, account, |document, cx| document.update_access_key(&owner, &key, status, cx.now))
                .await
        }
        "delete-key" => {
            let key = key()?;
            change(registry, account, |document, _| document.delete_access_key(&owner, &key)).await
        }
        "delete-user" => change(registry, account, |document, _| document.delete_user(&user)).await,
        // Ids (uid gid group...), or the name of an account.
        "set-posix" => {
            let ids: Result<Vec<u32>, _> = rest.split(' ').map(str::parse).collect();
            let posix = match ids.as_deref() {
                Ok([uid, gid, groups @ ..]) => Posix::ids(*uid, *gid, groups.to_vec())?,
                _ => Posix::name(rest)?,
            };
            change(registry, account, |document, _| document.set_user_posix(&user, Some(&posix))).await
        }
        "put-policy" => {
            let (holder, name) = (Holder::User(user), Name::new("own")?);
            let policy = Document::new(rest)?;
            change(registry, account, |document, cx| document.put_inline_policy(&holder, &name, &policy, cx))
                .await
        }
        _ => Err("no such command".into()),
    }
}

async fn change(
    registry: &Registry,
    account: &AccountId,
    change: impl Fn(&mut AccountDocument, &Context<'_>) -> Result<(), IamError> + Send + Sync,
) -> Outcome {
    registry.change(account, &change).await?;
    Ok("ok".to_owned())
}
