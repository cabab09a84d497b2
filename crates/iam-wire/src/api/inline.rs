//! The inputs and answers about inline policies of users, groups and roles.

use crate::input::inputs;
use crate::output::outputs;
use crate::page::Page;
use crate::rule::{DOCUMENT, EXISTING_USER_NAME, GROUP_NAME, POLICY_NAME, ROLE_NAME};
use crate::xml::{EncodedDocument, Text};

inputs! {
    PutUserPolicy<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
        policy_document: &'f str = text("PolicyDocument", &DOCUMENT),
    }
    GetUserPolicy<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
    }
    DeleteUserPolicy<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
    }
    ListUserPolicies<'f> {
        user_name: &'f str = text("UserName", &EXISTING_USER_NAME),
        page: Page = page(),
    }
    PutGroupPolicy<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
        policy_document: &'f str = text("PolicyDocument", &DOCUMENT),
    }
    GetGroupPolicy<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
    }
    DeleteGroupPolicy<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
    }
    ListGroupPolicies<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        page: Page = page(),
    }
    PutRolePolicy<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
        policy_document: &'f str = text("PolicyDocument", &DOCUMENT),
    }
    GetRolePolicy<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
    }
    DeleteRolePolicy<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
    }
    ListRolePolicies<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        page: Page = page(),
    }
}

outputs! {
    GetUserPolicy => GetUserPolicyResult<'a> {
        "UserName" user_name: Text<'a>,
        "PolicyName" policy_name: Text<'a>,
        "PolicyDocument" policy_document: EncodedDocument<'a>,
    }
    ListUserPolicies => ListUserPoliciesResult<'a> {
        "PolicyNames" policy_names: Vec<Text<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    GetGroupPolicy => GetGroupPolicyResult<'a> {
        "GroupName" group_name: Text<'a>,
        "PolicyName" policy_name: Text<'a>,
        "PolicyDocument" policy_document: EncodedDocument<'a>,
    }
    ListGroupPolicies => ListGroupPoliciesResult<'a> {
        "PolicyNames" policy_names: Vec<Text<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    GetRolePolicy => GetRolePolicyResult<'a> {
        "RoleName" role_name: Text<'a>,
        "PolicyName" policy_name: Text<'a>,
        "PolicyDocument" policy_document: EncodedDocument<'a>,
    }
    ListRolePolicies => ListRolePoliciesResult<'a> {
        "PolicyNames" policy_names: Vec<Text<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
