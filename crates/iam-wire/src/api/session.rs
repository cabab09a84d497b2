//! The inputs and answers of STS, about sessions.

use s3_types::Timestamp;

use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::rule::{
    ACCESS_KEY_ID, EXTERNAL_ID, FEDERATED_NAME, LDAP_PASSWORD, LDAP_USER_NAME, ROLE_SECONDS,
    ROLE_SESSION_DOCUMENT, SESSION_DOCUMENT, SESSION_NAME, SOURCE_IDENTITY, USER_SECONDS, WEB_IDENTITY_TOKEN,
};
use crate::secret::Secret;
use crate::tag::Tag;
use crate::xml::Text;

inputs! {
    GetCallerIdentity {}
    GetAccessKeyInfo<'f> {
        access_key_id: &'f str = text("AccessKeyId", &ACCESS_KEY_ID),
    }
    /// The input may not have the code of an MFA device, since this server has no such devices.
    GetSessionToken {
        duration_seconds: Option<u32> = number("DurationSeconds", USER_SECONDS),
        ; refused &["SerialNumber", "TokenCode", "MinimumSessionTokenSize"]
    }
    GetFederationToken<'f> {
        name: &'f str = text("Name", &FEDERATED_NAME),
        policy: Option<&'f str> = optional("Policy", &SESSION_DOCUMENT),
        policy_arns: Vec<&'f str> = session_policies("PolicyArns"),
        duration_seconds: Option<u32> = number("DurationSeconds", USER_SECONDS),
        tags: Vec<Tag<'f>> = session_tags("Tags"),
        ; refused &["MinimumSessionTokenSize"]
    }
    AssumeRole<'f> {
        role_arn: &'f str = role_arn("RoleArn"),
        role_session_name: &'f str = text("RoleSessionName", &SESSION_NAME),
        policy_arns: Vec<&'f str> = session_policies("PolicyArns"),
        policy: Option<&'f str> = optional("Policy", &ROLE_SESSION_DOCUMENT),
        duration_seconds: Option<u32> = number("DurationSeconds", ROLE_SECONDS),
        tags: Vec<Tag<'f>> = session_tags("Tags"),
        transitive_tag_keys: Vec<&'f str> = transitive_tag_keys("TransitiveTagKeys", &tags),
        external_id: Option<&'f str> = optional("ExternalId", &EXTERNAL_ID),
        source_identity: Option<&'f str> = optional("SourceIdentity", &SOURCE_IDENTITY),
        ; refused &["SerialNumber", "TokenCode", "ProvidedContexts", "MinimumSessionTokenSize"]
    }
    /// The input may not have `ProviderId`, which is for providers of OAuth 2.0 that do not speak
    /// OpenID Connect.
    AssumeRoleWithWebIdentity<'f> {
        role_arn: &'f str = role_arn("RoleArn"),
        role_session_name: &'f str = text("RoleSessionName", &SESSION_NAME),
        web_identity_token: Secret<'f> = secret("WebIdentityToken", &WEB_IDENTITY_TOKEN),
        policy_arns: Vec<&'f str> = session_policies("PolicyArns"),
        policy: Option<&'f str> = optional("Policy", &SESSION_DOCUMENT),
        duration_seconds: Option<u32> = number("DurationSeconds", ROLE_SECONDS),
        ; refused &["ProviderId", "MinimumSessionTokenSize"]
    }
    /// The input of MinIO's action, which clients ask for by this name; the members are MinIO's.
    AssumeRoleWithLDAPIdentity<'f> {
        ldap_user_name: &'f str = text("LDAPUsername", &LDAP_USER_NAME),
        ldap_password: Secret<'f> = secret("LDAPPassword", &LDAP_PASSWORD),
        policy: Option<&'f str> = optional("Policy", &SESSION_DOCUMENT),
        duration_seconds: Option<u32> = number("DurationSeconds", ROLE_SECONDS),
        ; refused &["TokenRevokeType"]
    }
}

elements! {
    /// The access key of a session, with its secret and token.
    Credentials<'a> {
        "AccessKeyId" access_key_id: Text<'a>,
        "SecretAccessKey" secret_access_key: Secret<'a>,
        "SessionToken" session_token: Secret<'a>,
        "Expiration" expiration: Timestamp,
    }
    /// The identity of a role's session.
    AssumedRoleUser<'a> {
        "AssumedRoleId" assumed_role_id: Text<'a>,
        "Arn" arn: Text<'a>,
    }
    /// The identity of a federated user.
    FederatedUser<'a> {
        "FederatedUserId" federated_user_id: Text<'a>,
        "Arn" arn: Text<'a>,
    }
}

outputs! {
    GetCallerIdentity => GetCallerIdentityResult<'a> {
        "UserId" user_id: Text<'a>,
        "Account" account: Text<'a>,
        "Arn" arn: Text<'a>,
    }
    GetAccessKeyInfo => GetAccessKeyInfoResult<'a> {
        "Account" account: Text<'a>,
    }
    GetSessionToken => GetSessionTokenResult<'a> {
        "Credentials" credentials: Credentials<'a>,
    }
    /// The answer always has `PackedPolicySize` (recorded).
    GetFederationToken => GetFederationTokenResult<'a> {
        "Credentials" credentials: Credentials<'a>,
        "FederatedUser" federated_user: FederatedUser<'a>,
        "PackedPolicySize" packed_policy_size: u32,
    }
    /// The answer has `PackedPolicySize` if the session has policies or tags (recorded).
    AssumeRole => AssumeRoleResult<'a> {
        "Credentials" credentials: Credentials<'a>,
        "AssumedRoleUser" assumed_role_user: AssumedRoleUser<'a>,
        "PackedPolicySize" packed_policy_size: Option<u32>,
        "SourceIdentity" source_identity: Option<Text<'a>>,
    }
    AssumeRoleWithWebIdentity => AssumeRoleWithWebIdentityResult<'a> {
        "Credentials" credentials: Credentials<'a>,
        "SubjectFromWebIdentityToken" subject_from_web_identity_token: Text<'a>,
        "AssumedRoleUser" assumed_role_user: AssumedRoleUser<'a>,
        "PackedPolicySize" packed_policy_size: Option<u32>,
        "Provider" provider: Text<'a>,
        "Audience" audience: Text<'a>,
        "SourceIdentity" source_identity: Option<Text<'a>>,
    }
    /// The answer has only the credentials, as MinIO's.
    AssumeRoleWithLDAPIdentity => AssumeRoleWithLDAPIdentityResult<'a> {
        "Credentials" credentials: Credentials<'a>,
    }
}
