//! The inputs and answers about users, their boundaries and tags.

use s3_types::Timestamp;

use super::boundary::AttachedPermissionsBoundary;
use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{EXISTING_USER_NAME, PATH, PATH_PREFIX, TAG_KEYS, USER_NAME};
use crate::tag::Tag;
use crate::xml::Text;

inputs! {
    CreateUser<'f> {
        path: Option<&'f str> = optional("Path", &PATH),
        user_name: &'f str = text("UserName", &USER_NAME),
        permissions_boundary: Option<&'f str> = optional_boundary("PermissionsBoundary"),
        tags: Vec<Tag<'f>> = optional_tags("Tags"),
    }
    /// The input without a name asks about the requester.
    GetUser<'f> {
        user_name: Option<&'f str> = optional("UserName", &EXISTING_USER_NAME),
    }
    UpdateUser<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
        new_path: Option<&'f str> = optional("NewPath", &PATH),
        new_user_name: Option<&'f str> = optional("NewUserName", &USER_NAME),
    }
    DeleteUser<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
    }
    ListUsers<'f> {
        path_prefix: Option<&'f str> = optional("PathPrefix", &PATH_PREFIX),
        page: Page = page(),
    }
    PutUserPermissionsBoundary<'f> {
        user_name: &'f str = text("UserName", &USER_NAME),
        permissions_boundary: &'f str = boundary("PermissionsBoundary"),
    }
    DeleteUserPermissionsBoundary<'f> {
        user_name: &'f str = text("UserName", &USER_NAME),
    }
    TagUser<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
        tags: Vec<Tag<'f>> = tags("Tags"),
    }
    UntagUser<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
        tag_keys: Vec<&'f str> = texts("TagKeys", &TAG_KEYS),
    }
    ListUserTags<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
        page: Page = page(),
    }
}

elements! {
    /// A user. Lists leave out boundary and tags; CreateUser and GetUser have them if there are any
    /// (recorded). Status and POSIX identity are ours: `Disabled`, or none; `UID:GID`, or a name.
    User<'a> {
        "Path" path: Text<'a>,
        "UserName" user_name: Text<'a>,
        "UserId" user_id: Text<'a>,
        "Arn" arn: Text<'a>,
        "CreateDate" create_date: Timestamp,
        "PermissionsBoundary" permissions_boundary: Option<AttachedPermissionsBoundary<'a>>,
        "Tags" tags: Option<Vec<Tag<'a>>>,
        "Status" status: Option<Text<'a>>,
        "PosixIdentity" posix_identity: Option<Text<'a>>,
    }
}

outputs! {
    CreateUser => CreateUserResult<'a> {
        "User" user: User<'a>,
    }
    GetUser => GetUserResult<'a> {
        "User" user: User<'a>,
    }
    ListUsers => ListUsersResult<'a> {
        "Users" users: Vec<User<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    ListUserTags => ListUserTagsResult<'a> {
        "Tags" tags: Vec<Tag<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
