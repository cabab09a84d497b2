//! The input and answer of the action that lists everything in an account.

use s3_types::Timestamp;

use super::attached::AttachedPolicy;
use super::boundary::AttachedPermissionsBoundary;
use super::policy::PolicyVersion;
use super::role::RoleLastUsed;
use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::tag::Tag;
use crate::words::EntityKind;
use crate::xml::{EncodedDocument, Text};

inputs! {
    GetAccountAuthorizationDetails {
        filter: Vec<EntityKind> = words("Filter"),
        page: Page = page_after_items(),
    }
}

elements! {
    /// An inline policy.
    PolicyDetail<'a> {
        "PolicyName" policy_name: Text<'a>,
        "PolicyDocument" policy_document: EncodedDocument<'a>,
    }
    /// A user with its policies.
    UserDetail<'a> {
        "Path" path: Text<'a>,
        "UserName" user_name: Text<'a>,
        "UserId" user_id: Text<'a>,
        "Arn" arn: Text<'a>,
        "CreateDate" create_date: Timestamp,
        "UserPolicyList" user_policy_list: Vec<PolicyDetail<'a>>,
        "GroupList" group_list: Vec<Text<'a>>,
        "AttachedManagedPolicies" attached_managed_policies: Vec<AttachedPolicy<'a>>,
        "PermissionsBoundary" permissions_boundary: Option<AttachedPermissionsBoundary<'a>>,
        "Tags" tags: Vec<Tag<'a>>,
    }
    /// A group with its policies.
    GroupDetail<'a> {
        "Path" path: Text<'a>,
        "GroupName" group_name: Text<'a>,
        "GroupId" group_id: Text<'a>,
        "Arn" arn: Text<'a>,
        "CreateDate" create_date: Timestamp,
        "GroupPolicyList" group_policy_list: Vec<PolicyDetail<'a>>,
        "AttachedManagedPolicies" attached_managed_policies: Vec<AttachedPolicy<'a>>,
    }
    /// A role with its policies. The list of its instance profiles is always empty.
    RoleDetail<'a> {
        "Path" path: Text<'a>,
        "RoleName" role_name: Text<'a>,
        "RoleId" role_id: Text<'a>,
        "Arn" arn: Text<'a>,
        "CreateDate" create_date: Timestamp,
        "AssumeRolePolicyDocument" assume_role_policy_document: EncodedDocument<'a>,
        "InstanceProfileList" instance_profile_list: Vec<Text<'a>>,
        "RolePolicyList" role_policy_list: Vec<PolicyDetail<'a>>,
        "AttachedManagedPolicies" attached_managed_policies: Vec<AttachedPolicy<'a>>,
        "PermissionsBoundary" permissions_boundary: Option<AttachedPermissionsBoundary<'a>>,
        "Tags" tags: Vec<Tag<'a>>,
        "RoleLastUsed" role_last_used: RoleLastUsed<'a>,
    }
    /// A managed policy with its versions.
    ManagedPolicyDetail<'a> {
        "PolicyName" policy_name: Text<'a>,
        "PolicyId" policy_id: Text<'a>,
        "Arn" arn: Text<'a>,
        "Path" path: Text<'a>,
        "DefaultVersionId" default_version_id: Text<'a>,
        "AttachmentCount" attachment_count: u32,
        "PermissionsBoundaryUsageCount" permissions_boundary_usage_count: u32,
        "IsAttachable" is_attachable: bool,
        "Description" description: Option<Text<'a>>,
        "CreateDate" create_date: Timestamp,
        "UpdateDate" update_date: Timestamp,
        "PolicyVersionList" policy_version_list: Vec<PolicyVersion<'a>>,
    }
}

outputs! {
    GetAccountAuthorizationDetails => GetAccountAuthorizationDetailsResult<'a> {
        "UserDetailList" user_detail_list: Vec<UserDetail<'a>>,
        "GroupDetailList" group_detail_list: Vec<GroupDetail<'a>>,
        "RoleDetailList" role_detail_list: Vec<RoleDetail<'a>>,
        "Policies" policies: Vec<ManagedPolicyDetail<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
