//! The quotas of IAM, and those of this server. Source: "IAM and AWS STS quotas" in the IAM User
//! Guide; the names in `LimitExceeded` are those of IAM's answers.

/// The characters of a name of a user or role.
pub const USER_NAME_CHARS_MAX: usize = 64;
/// The characters of a name of a group or a policy.
pub const NAME_CHARS_MAX: usize = 128;
/// The characters of a path.
pub const PATH_CHARS_MAX: usize = 512;
/// The characters of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 1_000;
/// The tags of a user, role, policy or provider.
pub const TAGS_MAX: usize = 50;
/// The characters of a tag's key.
pub const TAG_KEY_CHARS_MAX: usize = 128;
/// The characters of a tag's value.
pub const TAG_VALUE_CHARS_MAX: usize = 256;
/// The characters of a policy document, white space included.
pub const DOCUMENT_CHARS_MAX: usize = 131_072;

/// The accounts of a tree (not in AWS).
pub const ACCOUNTS_MAX: usize = 1_000;
/// The users of an account.
pub const USERS_MAX: usize = 5_000;
/// The groups of an account.
pub const GROUPS_MAX: usize = 300;
/// The roles of an account.
pub const ROLES_MAX: usize = 1_000;
/// The managed policies of an account.
pub const POLICIES_MAX: usize = 1_500;
/// The versions of a managed policy.
pub const VERSIONS_MAX: usize = 5;
/// The versions of all managed policies together, which IAM's account summary shows. It is never
/// reached: 1,500 policies of 5 versions are fewer.
pub const VERSIONS_IN_USE_MAX: usize = 10_000;
/// The OpenID providers of an account.
pub const PROVIDERS_MAX: usize = 100;
/// The client ids of a provider.
pub const CLIENT_IDS_MAX: usize = 100;
/// The thumbprints of a provider.
pub const THUMBPRINTS_MAX: usize = 5;
/// The characters of a thumbprint: SHA-1 in hexadecimal digits.
pub const THUMBPRINT_CHARS: usize = 40;
/// The characters of a client id.
pub const CLIENT_ID_CHARS_MAX: usize = 255;
/// The characters of the URL of a provider.
pub const PROVIDER_URL_CHARS_MAX: usize = 255;
/// The policies attached to a user, group or role.
pub const ATTACHED_MAX: usize = 10;
/// The groups of a user.
pub const GROUPS_PER_USER_MAX: usize = 10;
/// The access keys of a user or of root.
pub const ACCESS_KEYS_MAX: usize = 2;
/// The service keys of a user (not in AWS).
pub const SERVICE_KEYS_MAX: usize = 100;
/// The supplementary groups of a POSIX identity: the kernel's NGROUPS_MAX.
pub const POSIX_GROUPS_MAX: usize = 65_536;
/// The bytes of an account's document (not in AWS).
pub const ACCOUNT_BYTES_MAX: usize = 16 << 20;

/// The characters of all inline policies of a user, without white space.
pub const USER_POLICIES_CHARS_MAX: usize = 2_048;
/// The characters of all inline policies of a group, without white space.
pub const GROUP_POLICIES_CHARS_MAX: usize = 5_120;
/// The characters of all inline policies of a role, without white space.
pub const ROLE_POLICIES_CHARS_MAX: usize = 10_240;
/// The characters of a managed policy, without white space.
pub const POLICY_CHARS_MAX: usize = 6_144;
/// The characters of a trust policy, without white space.
pub const TRUST_CHARS_MAX: usize = 2_048;
