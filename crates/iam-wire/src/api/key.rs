//! The inputs and answers about access keys.

use s3_types::Timestamp;

use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{ACCESS_KEY_ID, EXISTING_USER_NAME};
use crate::secret::Secret;
use crate::words::KeyStatus;
use crate::xml::Text;

inputs! {
    CreateAccessKey<'f> {
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
    }
    UpdateAccessKey<'f> {
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
        access_key_id: &'f str = text("AccessKeyId", &ACCESS_KEY_ID),
        status: KeyStatus = word("Status", KeyStatus::Inactive),
    }
    DeleteAccessKey<'f> {
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
        access_key_id: &'f str = text("AccessKeyId", &ACCESS_KEY_ID),
    }
    ListAccessKeys<'f> {
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
        page: Page = page(),
    }
    GetAccessKeyLastUsed<'f> {
        access_key_id: &'f str = text("AccessKeyId", &ACCESS_KEY_ID),
    }
}

elements! {
    /// An access key with its secret, which is shown only in this answer.
    AccessKey<'a> {
        "UserName" user_name: Text<'a>,
        "AccessKeyId" access_key_id: Text<'a>,
        "Status" status: KeyStatus,
        "SecretAccessKey" secret_access_key: Secret<'a>,
        "CreateDate" create_date: Timestamp,
    }
    /// An access key without its secret.
    AccessKeyMetadata<'a> {
        "UserName" user_name: Text<'a>,
        "AccessKeyId" access_key_id: Text<'a>,
        "Status" status: KeyStatus,
        "CreateDate" create_date: Timestamp,
    }
    /// The time and the service of a key's last use; service and region are `N/A` if it was never
    /// used (recorded).
    AccessKeyLastUsed<'a> {
        "LastUsedDate" last_used_date: Option<Timestamp>,
        "ServiceName" service_name: Text<'a>,
        "Region" region: Text<'a>,
    }
}

outputs! {
    CreateAccessKey => CreateAccessKeyResult<'a> {
        "AccessKey" access_key: AccessKey<'a>,
    }
    ListAccessKeys => ListAccessKeysResult<'a> {
        "AccessKeyMetadata" access_key_metadata: Vec<AccessKeyMetadata<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    GetAccessKeyLastUsed => GetAccessKeyLastUsedResult<'a> {
        "UserName" user_name: Text<'a>,
        "AccessKeyLastUsed" access_key_last_used: AccessKeyLastUsed<'a>,
    }
}
