//! The inputs and answers of our actions about service keys: access keys of users that have a
//! policy of their own.

use s3_types::Timestamp;

use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{EXISTING_USER_NAME, POLICY_DESCRIPTION, SESSION_DOCUMENT, TIME};
use crate::secret::Secret;
use crate::words::KeyStatus;
use crate::xml::{EncodedDocument, Text};

inputs! {
    /// The input without a policy makes a key that may do all that its user may.
    CreateServiceKey<'f> {
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
        policy_document: Option<&'f str> = optional("PolicyDocument", &SESSION_DOCUMENT),
        description: Option<&'f str> = optional("Description", &POLICY_DESCRIPTION),
        expires: Option<&'f str> = optional("Expires", &TIME),
    }
    ListServiceKeys<'f> {
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
        page: Page = page(),
    }
}

elements! {
    /// A service key with its secret, which is shown only in this answer.
    ServiceKey<'a> {
        "UserName" user_name: Text<'a>,
        "AccessKeyId" access_key_id: Text<'a>,
        "Status" status: KeyStatus,
        "SecretAccessKey" secret_access_key: Secret<'a>,
        "CreateDate" create_date: Timestamp,
        "Expires" expires: Option<Timestamp>,
        "Description" description: Option<Text<'a>>,
    }
    /// A service key without its secret.
    ServiceKeyMetadata<'a> {
        "UserName" user_name: Text<'a>,
        "AccessKeyId" access_key_id: Text<'a>,
        "Status" status: KeyStatus,
        "CreateDate" create_date: Timestamp,
        "Expires" expires: Option<Timestamp>,
        "Description" description: Option<Text<'a>>,
        "PolicyDocument" policy_document: EncodedDocument<'a>,
    }
}

outputs! {
    CreateServiceKey => CreateServiceKeyResult<'a> {
        "ServiceKey" service_key: ServiceKey<'a>,
    }
    ListServiceKeys => ListServiceKeysResult<'a> {
        "ServiceKeyMetadata" service_key_metadata: Vec<ServiceKeyMetadata<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
