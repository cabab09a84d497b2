//! The inputs and answers about groups and their members.

use s3_types::Timestamp;

use super::user::User;
use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{EXISTING_USER_NAME, GROUP_NAME, PATH, PATH_PREFIX};
use crate::xml::Text;

inputs! {
    CreateGroup<'f> {
        path: Option<&'f str> = optional("Path", &PATH),
        group_name: &'f str = text("GroupName", &GROUP_NAME),
    }
    GetGroup<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        page: Page = page(),
    }
    UpdateGroup<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        new_path: Option<&'f str> = optional("NewPath", &PATH),
        new_group_name: Option<&'f str> = optional("NewGroupName", &GROUP_NAME),
    }
    DeleteGroup<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
    }
    ListGroups<'f> {
        path_prefix: Option<&'f str> = optional("PathPrefix", &PATH_PREFIX),
        page: Page = page(),
    }
    ListGroupsForUser<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
        page: Page = page(),
    }
    AddUserToGroup<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
    }
    RemoveUserFromGroup<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
    }
}

elements! {
    /// A group.
    Group<'a> {
        "Path" path: Text<'a>,
        "GroupName" group_name: Text<'a>,
        "GroupId" group_id: Text<'a>,
        "Arn" arn: Text<'a>,
        "CreateDate" create_date: Timestamp,
    }
}

outputs! {
    CreateGroup => CreateGroupResult<'a> {
        "Group" group: Group<'a>,
    }
    GetGroup => GetGroupResult<'a> {
        "Group" group: Group<'a>,
        "Users" users: Vec<User<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    ListGroups => ListGroupsResult<'a> {
        "Groups" groups: Vec<Group<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    ListGroupsForUser => ListGroupsForUserResult<'a> {
        "Groups" groups: Vec<Group<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
