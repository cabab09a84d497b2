//! The inputs and answers of the actions that ask for the decision about an action without doing
//! it.

pub use crate::context_entry::ContextEntry;
use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{ACTION_NAMES, ARN, DOCUMENT, POLICIES, RESOURCE, RESOURCES};
use crate::words::{PolicyDecision, PolicySource};
use crate::xml::{Element, Text, Xml};

inputs! {
    SimulateCustomPolicy<'f> {
        policy_input_list: Vec<&'f str> = texts("PolicyInputList", &POLICIES),
        boundary_input_list: Vec<&'f str> = optional_texts("PermissionsBoundaryPolicyInputList", &POLICIES),
        action_names: Vec<&'f str> = texts("ActionNames", &ACTION_NAMES),
        resource_arns: Vec<&'f str> = optional_texts("ResourceArns", &RESOURCES),
        resource_policy: Option<&'f str> = optional("ResourcePolicy", &DOCUMENT),
        resource_owner: Option<&'f str> = optional("ResourceOwner", &RESOURCE),
        caller_arn: Option<&'f str> = optional("CallerArn", &RESOURCE),
        context_entries: Vec<ContextEntry<'f>> = context_entries("ContextEntries"),
        page: Page = page_after_items(),
        ; refused &["OrderedOrganizationPolicyInputList", "ResourceHandlingOption"]
    }
    SimulatePrincipalPolicy<'f> {
        policy_source_arn: &'f str = text("PolicySourceArn", &ARN),
        policy_input_list: Vec<&'f str> = optional_texts("PolicyInputList", &POLICIES),
        boundary_input_list: Vec<&'f str> = optional_texts("PermissionsBoundaryPolicyInputList", &POLICIES),
        action_names: Vec<&'f str> = texts("ActionNames", &ACTION_NAMES),
        resource_arns: Vec<&'f str> = optional_texts("ResourceArns", &RESOURCES),
        resource_policy: Option<&'f str> = optional("ResourcePolicy", &DOCUMENT),
        resource_owner: Option<&'f str> = optional("ResourceOwner", &RESOURCE),
        caller_arn: Option<&'f str> = optional("CallerArn", &RESOURCE),
        context_entries: Vec<ContextEntry<'f>> = context_entries("ContextEntries"),
        page: Page = page_after_items(),
        ; refused &["PolicyExclusionList", "ResourceHandlingOption"]
    }
    GetContextKeysForCustomPolicy<'f> {
        policy_input_list: Vec<&'f str> = texts("PolicyInputList", &POLICIES),
    }
    GetContextKeysForPrincipalPolicy<'f> {
        policy_source_arn: &'f str = text("PolicySourceArn", &ARN),
        policy_input_list: Vec<&'f str> = optional_texts("PolicyInputList", &POLICIES),
    }
}

elements! {
    /// A place in a document: line and column, from 1. A statement begins behind its first brace
    /// and ends behind its last one (recorded).
    Position {
        "Line" line: u32,
        "Column" column: u32,
    }
    /// A statement on which the decision rests.
    MatchedStatement<'a> {
        "SourcePolicyId" source_policy_id: Text<'a>,
        "SourcePolicyType" source_policy_type: PolicySource,
        "StartPosition" start_position: Option<Position>,
        "EndPosition" end_position: Option<Position>,
    }
    /// The part of the boundary in the decision: whether it allows the action.
    PermissionsBoundaryDecisionDetail {
        "AllowedByPermissionsBoundary" allowed_by_permissions_boundary: bool,
    }
    /// The decision about an action and a resource.
    EvaluationResult<'a> {
        "EvalActionName" eval_action_name: Text<'a>,
        "EvalResourceName" eval_resource_name: Text<'a>,
        "EvalDecision" eval_decision: PolicyDecision,
        "MatchedStatements" matched_statements: Vec<MatchedStatement<'a>>,
        "MissingContextValues" missing_context_values: Vec<Text<'a>>,
        "PermissionsBoundaryDecisionDetail" permissions_boundary_decision_detail: Option<PermissionsBoundaryDecisionDetail>,
        "EvalDecisionDetails" eval_decision_details: Option<NoDetails>,
        "ResourceSpecificResults" resource_specific_results: Option<Vec<ResourceSpecificResult<'a>>>,
    }
    /// The same, of a resource that was sent.
    ResourceSpecificResult<'a> {
        "EvalResourceName" eval_resource_name: Text<'a>,
        "EvalResourceDecision" eval_resource_decision: PolicyDecision,
        "MatchedStatements" matched_statements: Vec<MatchedStatement<'a>>,
        "MissingContextValues" missing_context_values: Vec<Text<'a>>,
        "PermissionsBoundaryDecisionDetail" permissions_boundary_decision_detail: Option<PermissionsBoundaryDecisionDetail>,
    }
}

/// The details of decisions across accounts: there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoDetails;

impl Element for NoDetails {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.open(name);
        xml.close(name);
    }
}

outputs! {
    SimulateCustomPolicy => SimulateCustomPolicyResult<'a> {
        "EvaluationResults" evaluation_results: Vec<EvaluationResult<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    SimulatePrincipalPolicy => SimulatePrincipalPolicyResult<'a> {
        "EvaluationResults" evaluation_results: Vec<EvaluationResult<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
    GetContextKeysForCustomPolicy => GetContextKeysForCustomPolicyResult<'a> {
        "ContextKeyNames" context_key_names: Vec<Text<'a>>,
    }
    GetContextKeysForPrincipalPolicy => GetContextKeysForPrincipalPolicyResult<'a> {
        "ContextKeyNames" context_key_names: Vec<Text<'a>>,
    }
}
