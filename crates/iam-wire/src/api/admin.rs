//! The inputs and answers of actions that IAM does not have (`Version=slipway-1`), about the
//! accounts of the tree and further settings.

use super::key::{AccessKey, AccessKeyMetadata};
use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{
    ACCESS_KEY_ID, ACCOUNT_ID, ACCOUNT_NAME, DIRECTORY_GROUP, EXISTING_USER_NAME, GROUP_NAME, POSIX_IDENTITY,
    ROLE_NAME,
};
use crate::words::AccountStatus;
use crate::xml::Text;

inputs! {
    CreateAccount<'f> {
        account_name: &'f str = text("AccountName", &ACCOUNT_NAME),
    }
    GetAccount<'f> {
        account_id: &'f str = text("AccountId", &ACCOUNT_ID),
    }
    ListAccounts {
        page: Page = page(),
    }
    UpdateAccount<'f> {
        account_id: &'f str = text("AccountId", &ACCOUNT_ID),
        new_account_name: Option<&'f str> = optional("NewAccountName", &ACCOUNT_NAME),
        status: Option<AccountStatus> = optional_word("Status"),
    }
    DeleteAccount<'f> {
        account_id: &'f str = text("AccountId", &ACCOUNT_ID),
    }
    CreateRootAccessKey<'f> {
        account_id: &'f str = text("AccountId", &ACCOUNT_ID),
    }
    ListRootAccessKeys<'f> {
        account_id: &'f str = text("AccountId", &ACCOUNT_ID),
        page: Page = page(),
    }
    DeleteRootAccessKey<'f> {
        account_id: &'f str = text("AccountId", &ACCOUNT_ID),
        access_key_id: &'f str = text("AccessKeyId", &ACCESS_KEY_ID),
    }
    /// The input names either a user or a role, of the requester's account if it names no other.
    SetDisabled<'f> {
        account_id: Option<&'f str> = optional("AccountId", &ACCOUNT_ID),
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
        role_name: Option<&'f str> = optional("RoleName", &ROLE_NAME),
        disabled: Option<bool> = flag("Disabled"),
    }
    /// The input names either a user or a role, as that of [`SetDisabled`] does. If it has no
    /// identity, the present one is removed.
    SetPosixIdentity<'f> {
        account_id: Option<&'f str> = optional("AccountId", &ACCOUNT_ID),
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
        role_name: Option<&'f str> = optional("RoleName", &ROLE_NAME),
        identity: Option<&'f str> = optional("Identity", &POSIX_IDENTITY),
    }
    /// Sets the directory's group whose members get the policies of a group of the requester's
    /// account. Without one, the present one is removed.
    SetGroupOfDirectory<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        directory_group: Option<&'f str> = optional("DirectoryGroup", &DIRECTORY_GROUP),
    }
    ListGroupsOfDirectory {
        page: Page = page(),
    }
}

elements! {
    /// An account.
    Account<'a> {
        "AccountId" account_id: Text<'a>,
        "AccountName" account_name: Text<'a>,
        "AccountAlias" account_alias: Option<Text<'a>>,
        "CanonicalId" canonical_id: Text<'a>,
        "Status" status: AccountStatus,
        "OwnsTree" owns_tree: bool,
        "Users" users: u32,
        "Groups" groups: u32,
        "Roles" roles: u32,
        "Policies" policies: u32,
    }
    /// A group, and the directory's group whose members get its policies.
    GroupOfDirectory<'a> {
        "GroupName" group_name: Text<'a>,
        "DirectoryGroup" directory_group: Text<'a>,
    }
}

outputs! {
    CreateAccount => CreateAccountResult<'a> {
        "Account" account: Account<'a>,
        "AccessKey" access_key: AccessKey<'a>,
    }
    GetAccount => GetAccountResult<'a> {
        "Account" account: Account<'a>,
    }
    ListAccounts => ListAccountsResult<'a> {
        "Accounts" accounts: Vec<Account<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    ListGroupsOfDirectory => ListGroupsOfDirectoryResult<'a> {
        "Groups" groups: Vec<GroupOfDirectory<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    CreateRootAccessKey => CreateRootAccessKeyResult<'a> {
        "AccessKey" access_key: AccessKey<'a>,
    }
    ListRootAccessKeys => ListRootAccessKeysResult<'a> {
        "AccessKeyMetadata" access_key_metadata: Vec<AccessKeyMetadata<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
