//! The inputs and answers about roles, their boundaries and tags.

use s3_types::Timestamp;

use super::boundary::AttachedPermissionsBoundary;
use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{DOCUMENT, MAX_SESSION_SECONDS, PATH, PATH_PREFIX, ROLE_DESCRIPTION, ROLE_NAME, TAG_KEYS};
use crate::tag::Tag;
use crate::xml::{EncodedDocument, Text};

inputs! {
    CreateRole<'f> {
        path: Option<&'f str> = optional("Path", &PATH),
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        assume_role_policy_document: &'f str = text("AssumeRolePolicyDocument", &DOCUMENT),
        description: Option<&'f str> = optional("Description", &ROLE_DESCRIPTION),
        max_session_duration: Option<u32> = number("MaxSessionDuration", MAX_SESSION_SECONDS),
        permissions_boundary: Option<&'f str> = optional_boundary("PermissionsBoundary"),
        tags: Vec<Tag<'f>> = optional_tags("Tags"),
        ; refused &["MaxSigninSessionDuration"]
    }
    GetRole<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
    }
    UpdateRole<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        description: Option<&'f str> = optional("Description", &ROLE_DESCRIPTION),
        max_session_duration: Option<u32> = number("MaxSessionDuration", MAX_SESSION_SECONDS),
        ; refused &["MaxSigninSessionDuration", "ResetMaxSigninSessionDuration"]
    }
    UpdateRoleDescription<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        description: &'f str = text("Description", &ROLE_DESCRIPTION),
    }
    UpdateAssumeRolePolicy<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        policy_document: &'f str = text("PolicyDocument", &DOCUMENT),
    }
    DeleteRole<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
    }
    ListRoles<'f> {
        path_prefix: Option<&'f str> = optional("PathPrefix", &PATH_PREFIX),
        page: Page = page(),
    }
    PutRolePermissionsBoundary<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        permissions_boundary: &'f str = boundary("PermissionsBoundary"),
    }
    DeleteRolePermissionsBoundary<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
    }
    TagRole<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        tags: Vec<Tag<'f>> = tags("Tags"),
    }
    UntagRole<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        tag_keys: Vec<&'f str> = texts("TagKeys", &TAG_KEYS),
    }
    ListRoleTags<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        page: Page = page(),
    }
}

elements! {
    /// The time and the region of a role's last use; empty if it was never used.
    RoleLastUsed<'a> {
        "LastUsedDate" last_used_date: Option<Timestamp>,
        "Region" region: Option<Text<'a>>,
    }
    /// A role. Recorded: CreateRole leaves out the description, the longest duration and the last
    /// use; UpdateRoleDescription leaves out the last two; ListRoles leaves out the boundary, the
    /// tags and the last use; GetRole has all of them, and an empty element for the last use if
    /// there was none.
    Role<'a> {
        "Path" path: Text<'a>,
        "RoleName" role_name: Text<'a>,
        "RoleId" role_id: Text<'a>,
        "Arn" arn: Text<'a>,
        "CreateDate" create_date: Timestamp,
        "AssumeRolePolicyDocument" assume_role_policy_document: EncodedDocument<'a>,
        "Description" description: Option<Text<'a>>,
        "MaxSessionDuration" max_session_duration: Option<u32>,
        "PermissionsBoundary" permissions_boundary: Option<AttachedPermissionsBoundary<'a>>,
        "Tags" tags: Option<Vec<Tag<'a>>>,
        "RoleLastUsed" role_last_used: Option<RoleLastUsed<'a>>,
        "Status" status: Option<Text<'a>>,
        "PosixIdentity" posix_identity: Option<Text<'a>>,
    }
}

outputs! {
    CreateRole => CreateRoleResult<'a> {
        "Role" role: Role<'a>,
    }
    GetRole => GetRoleResult<'a> {
        "Role" role: Role<'a>,
    }
    UpdateRole => UpdateRoleResult {}
    UpdateRoleDescription => UpdateRoleDescriptionResult<'a> {
        "Role" role: Role<'a>,
    }
    ListRoles => ListRolesResult<'a> {
        "Roles" roles: Vec<Role<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    ListRoleTags => ListRoleTagsResult<'a> {
        "Tags" tags: Vec<Tag<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
