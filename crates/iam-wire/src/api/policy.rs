//! The inputs and answers about managed policies and their versions.

use s3_types::Timestamp;

use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{DOCUMENT, POLICY_DESCRIPTION, POLICY_NAME, POLICY_PATH, TAG_KEYS, VERSION_ID};
use crate::tag::Tag;
use crate::words::{PolicyScope, PolicyUsage};
use crate::xml::{EncodedDocument, Text};

inputs! {
    CreatePolicy<'f> {
        policy_name: &'f str = text("PolicyName", &POLICY_NAME),
        path: Option<&'f str> = optional("Path", &POLICY_PATH),
        policy_document: &'f str = text("PolicyDocument", &DOCUMENT),
        description: Option<&'f str> = optional("Description", &POLICY_DESCRIPTION),
        tags: Vec<Tag<'f>> = optional_tags("Tags"),
    }
    GetPolicy<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
    }
    DeletePolicy<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
    }
    ListPolicies<'f> {
        scope: Option<PolicyScope> = optional_word("Scope"),
        only_attached: Option<bool> = flag("OnlyAttached"),
        path_prefix: Option<&'f str> = optional("PathPrefix", &POLICY_PATH),
        policy_usage_filter: Option<PolicyUsage> = optional_word("PolicyUsageFilter"),
        page: Page = page(),
    }
    CreatePolicyVersion<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
        policy_document: &'f str = text("PolicyDocument", &DOCUMENT),
        set_as_default: Option<bool> = flag("SetAsDefault"),
    }
    GetPolicyVersion<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
        version_id: &'f str = text("VersionId", &VERSION_ID),
    }
    DeletePolicyVersion<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
        version_id: &'f str = text("VersionId", &VERSION_ID),
    }
    ListPolicyVersions<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
        page: Page = page(),
    }
    SetDefaultPolicyVersion<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
        version_id: &'f str = text("VersionId", &VERSION_ID),
    }
    TagPolicy<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
        tags: Vec<Tag<'f>> = tags("Tags"),
    }
    UntagPolicy<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
        tag_keys: Vec<&'f str> = texts("TagKeys", &TAG_KEYS),
    }
    ListPolicyTags<'f> {
        policy_arn: &'f str = policy_arn("PolicyArn"),
        page: Page = page(),
    }
}

elements! {
    /// A policy. Recorded: CreatePolicy leaves out the description, and the tags if there are none;
    /// ListPolicies leaves out both; GetPolicy has the element for tags even if there are none.
    Policy<'a> {
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
        "Tags" tags: Option<Vec<Tag<'a>>>,
    }
    /// A version of a policy. Only GetPolicyVersion includes the document (recorded).
    PolicyVersion<'a> {
        "Document" document: Option<EncodedDocument<'a>>,
        "VersionId" version_id: Text<'a>,
        "IsDefaultVersion" is_default_version: bool,
        "CreateDate" create_date: Timestamp,
    }
}

outputs! {
    CreatePolicy => CreatePolicyResult<'a> {
        "Policy" policy: Policy<'a>,
    }
    GetPolicy => GetPolicyResult<'a> {
        "Policy" policy: Policy<'a>,
    }
    ListPolicies => ListPoliciesResult<'a> {
        "Policies" policies: Vec<Policy<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    CreatePolicyVersion => CreatePolicyVersionResult<'a> {
        "PolicyVersion" policy_version: PolicyVersion<'a>,
    }
    GetPolicyVersion => GetPolicyVersionResult<'a> {
        "PolicyVersion" policy_version: PolicyVersion<'a>,
    }
    ListPolicyVersions => ListPolicyVersionsResult<'a> {
        "Versions" versions: Vec<PolicyVersion<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    ListPolicyTags => ListPolicyTagsResult<'a> {
        "Tags" tags: Vec<Tag<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
