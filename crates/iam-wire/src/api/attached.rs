//! The inputs and answers about managed policies that are attached to users, groups and roles.

use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{GROUP_NAME, PATH, POLICY_PATH, ROLE_NAME, USER_NAME};
use crate::words::{EntityKind, PolicyUsage};
use crate::xml::Text;

inputs! {
    AttachUserPolicy<'f> {
        user_name: &'f str = text("UserName", &USER_NAME),
        policy_arn: &'f str = policy_arn("PolicyArn"),
    }
    DetachUserPolicy<'f> {
        user_name: &'f str = text("UserName", &USER_NAME),
        policy_arn: &'f str = policy_arn("PolicyArn"),
    }
    ListAttachedUserPolicies<'f> {
        user_name: &'f str = text("UserName", &USER_NAME),
        path_prefix: Option<&'f str> = optional("PathPrefix", &POLICY_PATH),
        page: Page = page(),
    }
    AttachGroupPolicy<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        policy_arn: &'f str = policy_arn("PolicyArn"),
    }
    DetachGroupPolicy<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        policy_arn: &'f str = policy_arn("PolicyArn"),
    }
    ListAttachedGroupPolicies<'f> {
        group_name: &'f str = text("GroupName", &GROUP_NAME),
        path_prefix: Option<&'f str> = optional("PathPrefix", &POLICY_PATH),
        page: Page = page(),
    }
    AttachRolePolicy<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        policy_arn: &'f str = policy_arn("PolicyArn"),
    }
    DetachRolePolicy<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        policy_arn: &'f str = policy_arn("PolicyArn"),
    }
    ListAttachedRolePolicies<'f> {
        role_name: &'f str = text("RoleName", &ROLE_NAME),
        path_prefix: Option<&'f str> = optional("PathPrefix", &POLICY_PATH),
        page: Page = page(),
    }
    ListEntitiesForPolicy<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
        entity_filter: Option<EntityKind> = optional_word("EntityFilter"),
        path_prefix: Option<&'f str> = optional("PathPrefix", &PATH),
        policy_usage_filter: Option<PolicyUsage> = optional_word("PolicyUsageFilter"),
        page: Page = page(),
    }
}

elements! {
    /// A managed policy that is attached to something.
    AttachedPolicy<'a> {
        "PolicyName" policy_name: Text<'a>,
        "PolicyArn" policy_arn: Text<'a>,
    }
    /// A group to which a policy is attached.
    PolicyGroup<'a> {
        "GroupName" group_name: Text<'a>,
        "GroupId" group_id: Text<'a>,
    }
    /// A user to whom a policy is attached.
    PolicyUser<'a> {
        "UserName" user_name: Text<'a>,
        "UserId" user_id: Text<'a>,
    }
    /// A role to which a policy is attached.
    PolicyRole<'a> {
        "RoleName" role_name: Text<'a>,
        "RoleId" role_id: Text<'a>,
    }
}

outputs! {
    ListAttachedUserPolicies => ListAttachedUserPoliciesResult<'a> {
        "AttachedPolicies" attached_policies: Vec<AttachedPolicy<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    ListAttachedGroupPolicies => ListAttachedGroupPoliciesResult<'a> {
        "AttachedPolicies" attached_policies: Vec<AttachedPolicy<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    ListAttachedRolePolicies => ListAttachedRolePoliciesResult<'a> {
        "AttachedPolicies" attached_policies: Vec<AttachedPolicy<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    ListEntitiesForPolicy => ListEntitiesForPolicyResult<'a> {
        "PolicyGroups" policy_groups: Vec<PolicyGroup<'a>>,
        "PolicyUsers" policy_users: Vec<PolicyUser<'a>>,
        "PolicyRoles" policy_roles: Vec<PolicyRole<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
