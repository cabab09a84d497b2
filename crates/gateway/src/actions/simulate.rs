//! The actions that ask what policies would decide: SimulatePrincipalPolicy, SimulateCustomPolicy,
//! and those that list the condition keys of policies. The crate `policy` decides, as for real
//! requests; the values of conditions are parameters.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use iam::{Account, AccountId};
use iam_wire::api::{
    self, ContextEntry, EvaluationResult, GetContextKeysForCustomPolicyResult,
    GetContextKeysForPrincipalPolicyResult, MatchedStatement, NoDetails, PermissionsBoundaryDecisionDetail,
    ResourceSpecificResult, SimulateCustomPolicyResult, SimulatePrincipalPolicyResult,
};
use iam_wire::{Page, PolicyDecision, PolicySource, QueryCode, QueryError, Text};
use policy::{
    Action, Certainty, Documents, Explanation, Facts, Key, Kind, Party, PartyKind, Policy, Request, Resource,
    Source, Value, Verdict,
};

use super::call::ActionCall;
use super::perform::{Perform, rendered};
use super::place::{Place, places, variables};
use super::sources::{Entity, Sourced, given, of_entity};
use super::target::Target;
use crate::fair_share::FairShare;
use crate::limits::SIMULATED_STATEMENTS_MAX;

fn invalid(message: impl Into<String>) -> QueryError {
    QueryError::new(QueryCode::InvalidInput, message.into())
}

/// The caller of a simulated request.
struct Caller {
    kind: PartyKind,
    account: AccountId,
    arn: String,
    issuer: Option<String>,
}

/// Makes the caller from the ARN of a user, a federated user, a role's session or root.
fn caller(arn: &str) -> Result<Caller, QueryError> {
    let wrong = || invalid(format!("The caller {arn} is not the ARN of a user, of a session or of root."));
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let ["arn", "aws", service, "", account, who] = parts[..] else { return Err(wrong()) };
    let account = AccountId::new(account).map_err(|_| wrong())?;
    let mut names = who.split('/');
    let (kind, issuer) = match (service, names.next(), names.next()) {
        ("iam", Some("root"), None) => (PartyKind::Root, None),
        ("iam", Some("user"), Some(_)) => (PartyKind::User, None),
        ("sts", Some("assumed-role"), Some(role)) => {
            (PartyKind::RoleSession, Some(format!("arn:aws:iam::{account}:role/{role}")))
        }
        ("sts", Some("federated-user"), Some(_)) => (PartyKind::FederatedUser, None),
        _ => return Err(wrong()),
    };
    Ok(Caller { kind, account, arn: arn.to_owned(), issuer })
}

/// The values of condition keys: parameters, and those that follow from the caller. It notes the
/// keys that policies ask for and that have no value.
struct Given<'a> {
    entries: &'a [ContextEntry<'a>],
    of_caller: Vec<(&'static str, String)>,
    missing: RefCell<BTreeSet<String>>,
}

impl Facts for Given<'_> {
    fn value(&self, key: &Key) -> Value<'_> {
        let name = key.to_string();
        let sent = self.entries.iter().find(|entry| entry.name.eq_ignore_ascii_case(&name));
        if let Some(entry) = sent {
            return match entry.values[..] {
                [] => Value::Absent,
                [value] if !key.is_many() => Value::text(value),
                ref values => Value::Many(values.iter().map(|value| (*value).into()).collect()),
            };
        }
        if let Some((_, value)) = self.of_caller.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            return Value::text(value);
        }
        self.missing.borrow_mut().insert(name);
        Value::Absent
    }
}

/// A simulation, as SimulatePrincipalPolicy and SimulateCustomPolicy ask for it.
struct Simulation<'a> {
    policies: Vec<Sourced>,
    boundary: Option<Sourced>,
    caller: Caller,
    /// The value of `aws:userid`: the unique id of the caller, if that is the user whose policies
    /// are simulated; `None` for any other caller, whose id is not known here.
    user: Option<String>,
    actions: &'a [&'a str],
    resources: &'a [&'a str],
    resource_policy: Option<&'a str>,
    /// The places of the statements of the resource policy.
    resource_places: Vec<Place>,
    owner: Option<AccountId>,
    entries: &'a [ContextEntry<'a>],
}

/// The policy of each bucket that a page of results is about.
type BucketPolicies<'a> = BTreeMap<&'a str, Policy>;

/// Returns the account from the ARN of the owner of resources.
fn owner(arn: Option<&str>) -> Result<Option<AccountId>, QueryError> {
    let Some(arn) = arn else { return Ok(None) };
    let number = arn.split(':').nth(4).unwrap_or(arn);
    let wrong = |_| invalid(format!("The owner {arn} is not the ARN of an account."));
    AccountId::new(number).map(Some).map_err(wrong)
}

/// Makes a resource from its ARN. Bucket and key are not decoded or checked.
fn resource(arn: &str, action: Action) -> Resource<'_> {
    match arn.strip_prefix("arn:aws:s3:::") {
        None if arn == "*" && action.service() == "s3" => Resource::Service,
        None => Resource::Arn(arn),
        Some(path) => match path.split_once('/') {
            Some((bucket, key)) => Resource::Object(bucket, key),
            None => Resource::Bucket(path),
        },
    }
}

/// Returns the bucket that the ARN of a bucket or an object names.
fn bucket_of(arn: &str) -> Option<&str> {
    arn.strip_prefix("arn:aws:s3:::").and_then(|path| path.split('/').next())
}

fn action(name: &str) -> Result<Action, QueryError> {
    Action::named(name).ok_or_else(|| {
        invalid(format!(
            "There is no action {name}: those of s3, s3express, iam and sts are known, by their names."
        ))
    })
}

impl Simulation<'_> {
    /// Decides about the actions and resources of a page. If there are many statements, the page
    /// has fewer results than it may have, so that its cost is bounded: each statement is looked
    /// at, and may be part of the answer, once for each result.
    async fn run(&self, page: &Page) -> Result<(Vec<EvaluationResult<'_>>, Option<String>), QueryError> {
        if self.actions.is_empty() {
            return Err(invalid("ActionNames names no action."));
        }
        let all: &[&str] = if self.resources.is_empty() { &["*"] } else { self.resources };
        let pairs =
            self.actions.iter().flat_map(|action| all.iter().map(move |resource| (*action, *resource)));
        let statements = self.policies.iter().chain(&self.boundary).map(|one| one.places.len());
        let statements = statements.sum::<usize>() + self.resource_places.len();
        let page = page.at_most(SIMULATED_STATEMENTS_MAX / statements.max(1));
        let cut = page.cut(pairs.enumerate(), |(number, _)| format!("{number:08}").into());
        let of_buckets = self.bucket_policies(cut.items.iter().map(|(_, (_, resource))| *resource))?;
        let mut results = Vec::with_capacity(cut.items.len());
        let mut share = FairShare::begin();
        for &(_, (action, arn)) in &cut.items {
            share.rest().await;
            let of_resource = bucket_of(arn).and_then(|bucket| of_buckets.get(bucket));
            results.push(self.decide(action, arn, of_resource)?);
        }
        Ok((results, cut.marker))
    }

    fn decide<'s>(
        &'s self,
        name: &'s str,
        arn: &'s str,
        of_resource: Option<&Policy>,
    ) -> Result<EvaluationResult<'s>, QueryError> {
        let action = action(name)?;
        let identity: Vec<Arc<Policy>> = self.policies.iter().map(|one| Arc::clone(&one.policy)).collect();
        let documents = Documents {
            identity: &identity,
            boundary: self.boundary.as_ref().map(|one| &*one.policy),
            session: None,
            resource: of_resource,
            owner: self.owner.as_ref().map(AccountId::as_str),
            is_trust: false,
            is_restricted: false,
        };
        let canonical_id = Account::new(self.caller.account.clone()).canonical_id().to_owned();
        let facts = Given { entries: self.entries, of_caller: self.of_caller(), missing: RefCell::default() };
        let party = Party {
            kind: self.caller.kind,
            account: self.caller.account.as_str(),
            canonical_id: &canonical_id,
            arn: &self.caller.arn,
            issuer: self.caller.issuer.as_deref(),
            id: None,
            issuer_id: None,
        };
        let request = Request { party, action, resource: resource(arn, action), facts: &facts };
        let explanation = Explanation::new(&request, &documents);
        let decision = match explanation.verdict {
            Verdict::Allow => PolicyDecision::Allowed,
            Verdict::Deny => PolicyDecision::ExplicitDeny,
            Verdict::NoGrant | Verdict::NeedsTags => PolicyDecision::ImplicitDeny,
        };
        let is_clear = matches!(explanation.verdict, Verdict::Allow | Verdict::Deny);
        let matched = explanation.decisive().filter(|_| is_clear);
        let matched_statements: Vec<_> = matched.filter_map(|note| self.matched(note)).collect();
        let missing = facts.missing.into_inner().into_iter().map(Text::Owned);
        let allowed_by_permissions_boundary = explanation.sums.boundary == Certainty::Yes;
        let one = ResourceSpecificResult {
            eval_resource_name: arn.into(),
            eval_resource_decision: decision,
            matched_statements,
            missing_context_values: missing.collect(),
            permissions_boundary_decision_detail: self
                .boundary
                .is_some()
                .then_some(PermissionsBoundaryDecisionDetail { allowed_by_permissions_boundary }),
        };
        Ok(self.result(name, one))
    }

    /// Makes the result of an action and a resource. What was sent as a resource is there twice.
    fn result<'s>(&'s self, name: &'s str, one: ResourceSpecificResult<'s>) -> EvaluationResult<'s> {
        let is_sent = !self.resources.is_empty();
        EvaluationResult {
            eval_action_name: name.into(),
            eval_resource_name: one.eval_resource_name.clone(),
            eval_decision: one.eval_resource_decision,
            matched_statements: one.matched_statements.clone(),
            missing_context_values: one.missing_context_values.clone(),
            permissions_boundary_decision_detail: one.permissions_boundary_decision_detail.clone(),
            eval_decision_details: is_sent.then_some(NoDetails),
            resource_specific_results: is_sent.then(|| vec![one]),
        }
    }

    /// Compiles the resource policy once for each bucket among the resources.
    fn bucket_policies<'r>(
        &self,
        arns: impl Iterator<Item = &'r str>,
    ) -> Result<BucketPolicies<'r>, QueryError> {
        let mut all = BTreeMap::new();
        let Some(text) = self.resource_policy else { return Ok(all) };
        for arn in arns {
            let bucket = bucket_of(arn)
                .ok_or_else(|| invalid("ResourcePolicy is that of a bucket: ResourceArns has to name it."))?;
            if !all.contains_key(bucket) {
                let parsed = Policy::parse(text.as_bytes(), Kind::Bucket(bucket));
                all.insert(bucket, parsed.map_err(|why| invalid(format!("ResourcePolicy: {why}")))?);
            }
        }
        Ok(all)
    }

    /// Returns the values of condition keys that follow from the caller. Others, such as the time
    /// or the client's address, have to be parameters.
    fn of_caller(&self) -> Vec<(&'static str, String)> {
        let Caller { kind, account, arn, issuer } = &self.caller;
        let shown = match kind {
            PartyKind::Root => "Account",
            PartyKind::RoleSession => "AssumedRole",
            PartyKind::FederatedUser => "FederatedUser",
            _ => "User",
        };
        let mut values = vec![
            ("aws:PrincipalType", shown.to_owned()),
            ("aws:PrincipalAccount", account.to_string()),
            ("aws:PrincipalArn", issuer.as_ref().unwrap_or(arn).clone()),
            ("aws:ResourceAccount", self.owner.as_ref().unwrap_or(account).to_string()),
            ("s3:ResourceAccount", self.owner.as_ref().unwrap_or(account).to_string()),
        ];
        if *kind == PartyKind::User {
            values.extend(arn.rsplit('/').next().map(|name| ("aws:username", name.to_owned())));
        }
        values.extend(self.user.clone().map(|id| ("aws:userid", id)));
        values
    }

    fn matched(&self, note: &policy::Note) -> Option<MatchedStatement<'_>> {
        let (id, kind, places) = match note.source {
            Source::Identity => self.policies.get(note.document).map(Sourced::shown)?,
            Source::Boundary => self.boundary.as_ref().map(Sourced::shown)?,
            Source::Resource => ("ResourcePolicy", PolicySource::Resource, &*self.resource_places),
            Source::Session => return None,
        };
        let (start_position, end_position) = places.get(note.statement).cloned().unzip();
        Some(MatchedStatement {
            source_policy_id: id.into(),
            source_policy_type: kind,
            start_position,
            end_position,
        })
    }
}

/// Reads the boundary that is a parameter; there may be at most one.
fn boundary_of(sent: &[&str]) -> Result<Option<Sourced>, QueryError> {
    match sent {
        [] => Ok(None),
        [_] => Ok(given(sent, "PermissionsBoundaryPolicyInputList")?.pop()),
        _ => Err(invalid("PermissionsBoundaryPolicyInputList has at most one policy.")),
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::SimulateCustomPolicy<'f> {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let anybody = call.arn("user", "/simulated");
        let simulation = Simulation {
            policies: given(&self.policy_input_list, "PolicyInputList")?,
            boundary: boundary_of(&self.boundary_input_list)?,
            caller: caller(self.caller_arn.unwrap_or(&anybody))?,
            user: None,
            actions: &self.action_names,
            resources: &self.resource_arns,
            resource_policy: self.resource_policy,
            resource_places: self.resource_policy.map(places).unwrap_or_default(),
            owner: owner(self.resource_owner)?,
            entries: &self.context_entries,
        };
        let (evaluation_results, marker) = simulation.run(&self.page).await?;
        let is_truncated = marker.is_some();
        let marker = marker.map(Text::Owned);
        Ok(rendered(&SimulateCustomPolicyResult { evaluation_results, is_truncated, marker }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::SimulatePrincipalPolicy<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        target_of(call, self.policy_source_arn)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let entity = of_entity(call, self.policy_source_arn)?;
        let own = match &entity {
            Entity { user: true, .. } => Some(self.policy_source_arn.to_owned()),
            Entity { session: Some(arn), .. } => Some(arn.clone()),
            Entity { .. } => None,
        };
        let arn = match (self.caller_arn, own) {
            (Some(arn), _) => arn.to_owned(),
            (None, Some(arn)) => arn,
            (None, None) if self.resource_policy.is_some() => {
                return Err(invalid("CallerArn has to be given for a group and a ResourcePolicy."));
            }
            (None, None) => call.arn("user", "/simulated"),
        };
        let is_own = self.caller_arn.is_none_or(|arn| arn == self.policy_source_arn);
        let mut policies = entity.policies;
        policies.extend(given(&self.policy_input_list, "PolicyInputList")?);
        let simulation = Simulation {
            policies,
            boundary: boundary_of(&self.boundary_input_list)?.or(entity.boundary),
            caller: caller(&arn)?,
            user: entity.id.filter(|_| is_own),
            actions: &self.action_names,
            resources: &self.resource_arns,
            resource_policy: self.resource_policy,
            resource_places: self.resource_policy.map(places).unwrap_or_default(),
            owner: owner(self.resource_owner)?,
            entries: &self.context_entries,
        };
        let (evaluation_results, marker) = simulation.run(&self.page).await?;
        let is_truncated = marker.is_some();
        let marker = marker.map(Text::Owned);
        Ok(rendered(&SimulatePrincipalPolicyResult { evaluation_results, is_truncated, marker }, call))
    }
}

/// Returns the target of an action on a user, group or role: the ARN, and if the entity exists,
/// what conditions may ask for.
fn target_of<'v>(call: &'v ActionCall<'_>, arn: &'v str) -> Result<Target<'v>, QueryError> {
    let name = arn.rsplit('/').next().unwrap_or_default();
    let is_of = |kind: &str| arn.starts_with(&call.arn(kind, "/"));
    let target = match () {
        () if is_of("user") => call.of_user(name),
        () if is_of("group") => call.of_group(name),
        () if is_of("role") => call.of_role(name),
        () => {
            return Err(invalid(format!(
                "Invalid Entity Arn: {arn} does not clearly define entity type and name."
            )));
        }
    };
    // Another path is another entity, which is not there.
    Ok(if target.arn() == arn { target } else { Target::new(arn) })
}

/// Returns the names of the condition keys that policies use.
fn keys(policies: &[Sourced]) -> Vec<Text<'static>> {
    let conditions = policies.iter().flat_map(|one| &one.policy.statements).flat_map(|of| &of.conditions);
    let mut all: BTreeSet<String> = conditions.map(|condition| condition.key().to_string()).collect();
    all.extend(policies.iter().flat_map(|one| variables(&one.text)));
    all.into_iter().map(Text::Owned).collect()
}

#[async_trait]
impl<'f> Perform<'f> for api::GetContextKeysForCustomPolicy<'f> {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let context_key_names = keys(&given(&self.policy_input_list, "PolicyInputList")?);
        Ok(rendered(&GetContextKeysForCustomPolicyResult { context_key_names }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::GetContextKeysForPrincipalPolicy<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        target_of(call, self.policy_source_arn)
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let mut all = of_entity(call, self.policy_source_arn)?.policies;
        all.extend(given(&self.policy_input_list, "PolicyInputList")?);
        let context_key_names = keys(&all);
        Ok(rendered(&GetContextKeysForPrincipalPolicyResult { context_key_names }, call))
    }
}
