//! The actions about managed policies and their versions.

use async_trait::async_trait;
use iam::model::{BUILT_IN, BuiltIn, Description, Document, NewPolicy, PolicyArn, Tagged, built_in};
use iam_wire::api::{
    self, CreatePolicyResult, CreatePolicyVersionResult, GetPolicyResult, GetPolicyVersionResult,
    ListPoliciesResult, ListPolicyTagsResult, ListPolicyVersionsResult,
};
use iam_wire::{PolicyScope, PolicyUsage, QueryCode, QueryError, Tag, Text};
use s3_types::Timestamp;

use super::call::{ActionCall, name};
use super::entities::{document, new_tags, path, policy, policy_arn, tag_keys, tags, uses, version_id};
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;

/// The number of the only version that built-in policies have.
pub(super) const BUILT_IN_VERSION: u32 = 1;

/// Returns a built-in policy in the form of answers. Its times are those of 1970, since nothing is
/// known about them.
pub(super) fn shown_built_in<'a>(call: &ActionCall<'_>, policy: &'a BuiltIn) -> Option<api::Policy<'a>> {
    let arn = PolicyArn::new(policy.arn).ok()?;
    let parts = arn.parts()?;
    let (attachment_count, permissions_boundary_usage_count) = uses(call.document(), &arn);
    Some(api::Policy {
        policy_name: parts.name.as_str().to_owned().into(),
        policy_id: policy.id.into(),
        arn: policy.arn.into(),
        path: parts.path.as_str().to_owned().into(),
        default_version_id: version_id(BUILT_IN_VERSION),
        attachment_count,
        permissions_boundary_usage_count,
        is_attachable: true,
        description: None,
        create_date: Timestamp::UNIX_EPOCH,
        update_date: Timestamp::UNIX_EPOCH,
        tags: None,
    })
}

/// Returns the number of a version from its id, such as `v3`; `None` if it is not `v` and a number.
fn version_number(id: &str) -> Option<u32> {
    id.strip_prefix('v')?.parse().ok()
}

fn no_version(arn: &str, id: &str) -> QueryError {
    let message = format!("Policy {arn} version {id} does not exist or is not attachable.");
    QueryError::new(QueryCode::NoSuchEntity, message)
}

fn new_document(text: &str) -> Result<Document, QueryError> {
    Document::new(text).map_err(|why| error::of_text("PolicyDocument", why))
}

#[async_trait]
impl<'f> Perform<'f> for api::CreatePolicy<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.to_be_made("policy", self.path, self.policy_name).sending_tags(&self.tags))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let description = self.description.map(Description::new).transpose();
        let new = NewPolicy {
            name: name("PolicyName", self.policy_name)?,
            path: path(self.path)?,
            description: description.map_err(|why| error::of_text("Description", why))?,
            document: new_document(self.policy_document)?,
            tags: new_tags(&self.tags)?,
        };
        let made = call
            .change(&|document, cx| {
                document.create_policy(&new, cx)?;
                Ok(document.policies.get(&new.name).cloned())
            })
            .await?;
        let made = made.ok_or_else(|| error::no_policy(self.policy_name))?;
        let mut policy = policy(call.document(), &new.name, &made);
        policy.tags = Some(tags(&made.tags)).filter(|tags| !tags.is_empty());
        Ok(rendered(&CreatePolicyResult { policy }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::GetPolicy<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let arn = policy_arn(self.policy_arn)?;
        if let Some(policy) = built_in(&arn).and_then(|policy| shown_built_in(call, policy)) {
            let policy = api::Policy { tags: Some(Vec::new()), ..policy };
            return Ok(rendered(&GetPolicyResult { policy }, call));
        }
        let found = call.document().policy(&arn);
        let (name, found) = found.ok_or_else(|| error::no_policy(self.policy_arn))?;
        let mut policy = policy(call.document(), name, found);
        policy.description = found.description.as_ref().map(|text| text.as_str().into());
        policy.tags = Some(tags(&found.tags));
        Ok(rendered(&GetPolicyResult { policy }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeletePolicy<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let arn = policy_arn(self.policy_arn)?;
        call.change(&|document, _| document.delete_policy(&arn)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListPolicies<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.all_of("policy"))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let scope = self.scope.unwrap_or(PolicyScope::All);
        let prefix = self.path_prefix.unwrap_or("/");
        let mut all = Vec::new();
        if scope != PolicyScope::AWS {
            let document = call.document();
            all.extend(document.policies.iter().map(|(name, there)| policy(document, name, there)));
        }
        if scope != PolicyScope::Local {
            all.extend(BUILT_IN.iter().filter_map(|policy| shown_built_in(call, policy)));
        }
        all.retain(|policy| {
            let (attached, boundaries) = (policy.attachment_count, policy.permissions_boundary_usage_count);
            let is_used = match self.policy_usage_filter {
                Some(PolicyUsage::PermissionsBoundary) => boundaries > 0,
                Some(PolicyUsage::PermissionsPolicy) => attached > 0,
                None => attached + boundaries > 0,
            };
            let is_wanted =
                is_used || !(self.only_attached == Some(true) || self.policy_usage_filter.is_some());
            is_wanted && policy.path.starts_with(prefix)
        });
        let page = self.page.cut(all, |policy| {
            let account = policy.arn.split(':').nth(4).unwrap_or_default();
            format!("{} {account}", policy.policy_name).into()
        });
        let is_truncated = page.is_truncated();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListPoliciesResult { policies: page.items, is_truncated, marker }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::CreatePolicyVersion<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (arn, text) = (policy_arn(self.policy_arn)?, new_document(self.policy_document)?);
        let is_default = self.set_as_default == Some(true);
        let (number, created) = call
            .change(&|document, cx| {
                let number = document.create_policy_version(&arn, &text, is_default, cx)?;
                let made = document.policy(&arn).and_then(|(_, policy)| policy.versions.get(&number));
                Ok((number, made.map_or(cx.now, |version| version.created)))
            })
            .await?;
        let policy_version = api::PolicyVersion {
            document: None,
            version_id: version_id(number),
            is_default_version: is_default,
            create_date: created,
        };
        Ok(rendered(&CreatePolicyVersionResult { policy_version }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::GetPolicyVersion<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let arn = policy_arn(self.policy_arn)?;
        let missing = || no_version(self.policy_arn, self.version_id);
        let number = version_number(self.version_id).ok_or_else(missing)?;
        let policy_version = if let Some(policy) = built_in(&arn).filter(|_| number == BUILT_IN_VERSION) {
            api::PolicyVersion {
                document: Some(document(policy.document)),
                version_id: version_id(number),
                is_default_version: true,
                create_date: Timestamp::UNIX_EPOCH,
            }
        } else {
            let (_, policy) = call.document().policy(&arn).ok_or_else(missing)?;
            let version = policy.versions.get(&number).ok_or_else(missing)?;
            api::PolicyVersion {
                document: Some(document(version.document.as_str())),
                version_id: version_id(number),
                is_default_version: policy.default == number,
                create_date: version.created,
            }
        };
        Ok(rendered(&GetPolicyVersionResult { policy_version }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeletePolicyVersion<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let arn = policy_arn(self.policy_arn)?;
        let number = version_number(self.version_id);
        let number = number.ok_or_else(|| no_version(self.policy_arn, self.version_id))?;
        call.change(&|document, _| document.delete_policy_version(&arn, number)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListPolicyVersions<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let arn = policy_arn(self.policy_arn)?;
        let all = if built_in(&arn).is_some() {
            vec![(BUILT_IN_VERSION, true, Timestamp::UNIX_EPOCH)]
        } else {
            let found = call.document().policy(&arn);
            let (_, policy) = found.ok_or_else(|| error::no_policy(self.policy_arn))?;
            let of = |(number, version): (&u32, &iam::model::PolicyVersion)| {
                (*number, policy.default == *number, version.created)
            };
            policy.versions.iter().map(of).collect()
        };
        // The newest first (recorded).
        let page = self.page.cut(all, |(number, ..)| format!("{:010}", u32::MAX - number).into());
        let is_truncated = page.is_truncated();
        let versions = page.items.iter().map(|(number, is_default_version, created)| api::PolicyVersion {
            document: None,
            version_id: version_id(*number),
            is_default_version: *is_default_version,
            create_date: *created,
        });
        let versions = versions.collect();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListPolicyVersionsResult { versions, is_truncated, marker }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::SetDefaultPolicyVersion<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let arn = policy_arn(self.policy_arn)?;
        let number = version_number(self.version_id);
        let number = number.ok_or_else(|| no_version(self.policy_arn, self.version_id))?;
        call.change(&|document, _| document.set_default_policy_version(&arn, number)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::TagPolicy<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn).sending_tags(&self.tags))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (of, new) = (Tagged::Policy(policy_arn(self.policy_arn)?), new_tags(&self.tags)?);
        call.change(&|document, _| document.tag(&of, &new)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::UntagPolicy<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn).sending_keys(&self.tag_keys))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let (of, keys) = (Tagged::Policy(policy_arn(self.policy_arn)?), tag_keys(&self.tag_keys)?);
        call.change(&|document, _| document.untag(&of, &keys)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::ListPolicyTags<'f> {
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(call.of_policy(self.policy_arn))
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let arn = policy_arn(self.policy_arn)?;
        let all = if built_in(&arn).is_some() {
            Vec::new()
        } else {
            let found = call.document().policy(&arn);
            tags(&found.ok_or_else(|| error::no_policy(self.policy_arn))?.1.tags)
        };
        let page = self.page.cut(all, |tag: &Tag<'_>| tag.key.clone().into_owned().into());
        let is_truncated = page.is_truncated();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListPolicyTagsResult { tags: page.items, is_truncated, marker }, call))
    }
}
