//! Our own actions (`Version=slipway-1`): what they take, and what they answer.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use iam_wire::api::{
    AccessKey, Account, CreateAccount, CreateAccountResult, DeleteAccount, GetAccount, SetDisabled,
    UpdateAccount,
};
use iam_wire::{
    ACTIONS, AccountStatus, Form, Input, KeyStatus, Output as _, Permission, QueryError, Secret, Secrets,
    Service, State, parse,
};
use s3_types::Timestamp;

fn refused<'f, I: Input<'f>>(form: &'f Form<'_>) -> String {
    parse::<I>(form).err().as_ref().map(QueryError::to_string).unwrap_or_default()
}

fn form(body: &'static str) -> Form<'static> {
    Form::parse(b"", body.as_bytes()).unwrap()
}

#[test]
fn what_they_take() {
    let form_of = form("AccountId=123456789012&Status=Disabled");
    let update = parse::<UpdateAccount<'_>>(&form_of).unwrap();
    assert_eq!((update.account_id, update.status), ("123456789012", Some(AccountStatus::Disabled)));
    let disable = form("UserName=ann&Disabled=true");
    assert_eq!(parse::<SetDisabled<'_>>(&disable).unwrap().disabled, Some(true));
    let broken = refused::<GetAccount<'_>>(&form("AccountId=12345678901x"));
    assert!(broken.starts_with("ValidationError: 1 validation error detected"), "{broken}");
    assert!(refused::<DeleteAccount<'_>>(&form("")).ends_with("Member must not be null"));
    let more = refused::<CreateAccount<'_>>(&form("AccountName=a&Alias=b"));
    assert!(more.starts_with("NotImplemented") && more.ends_with("Alias"), "{more}");
}

#[test]
fn what_they_answer() {
    let account = Account {
        account_id: "123456789012".into(),
        account_name: "lab & <co>".into(),
        account_alias: None,
        canonical_id: "abc".into(),
        status: AccountStatus::Active,
        owns_tree: false,
        users: 1,
        groups: 2,
        roles: 3,
        policies: 4,
    };
    let access_key = AccessKey {
        user_name: "root".into(),
        access_key_id: "AKIAQ3EGRWOAT7LCK5XU".into(),
        status: KeyStatus::Active,
        secret_access_key: Secret::new("hush"),
        create_date: Timestamp::from_second(1_780_000_000).unwrap(),
    };
    assert_eq!(
        CreateAccountResult { account, access_key }.render("request-1"),
        "<CreateAccountResponse xmlns=\"urn:slipway:1\"><CreateAccountResult><Account><AccountId>123456789012</AccountId>\
         <AccountName>lab &amp; &lt;co&gt;</AccountName><CanonicalId>abc</CanonicalId><Status>Active</Status>\
         <OwnsTree>false</OwnsTree><Users>1</Users><Groups>2</Groups><Roles>3</Roles><Policies>4</Policies></Account>\
         <AccessKey><UserName>root</UserName><AccessKeyId>AKIAQ3EGRWOAT7LCK5XU</AccessKeyId><Status>Active</Status>\
         <SecretAccessKey>hush</SecretAccessKey><CreateDate>2026-05-28T20:26:40Z</CreateDate></AccessKey>\
         </CreateAccountResult><ResponseMetadata><RequestId>request-1</RequestId></ResponseMetadata>\
         </CreateAccountResponse>"
    );
}

/// None is for others than the administrator of the tree, but keys for services, which users make.
#[test]
fn who_may() {
    for row in ACTIONS.iter().filter(|row| row.service == Service::Slipway) {
        let is_of_users = ["CreateServiceKey", "ListServiceKeys"].contains(&row.name);
        assert_eq!(row.permission == Permission::Administrator, !is_of_users, "{}", row.name);
        assert!(matches!(row.state, State::Ours | State::Later), "{}", row.name);
        let gives = ["CreateAccount", "CreateRootAccessKey", "CreateServiceKey"].contains(&row.name);
        assert_eq!(row.secrets == Secrets::Gives, gives, "{}", row.name);
    }
}
