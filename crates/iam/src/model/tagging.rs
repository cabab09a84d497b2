//! The operations on tags of users, roles, policies and providers.

use super::arn::PolicyArn;
use super::document::AccountDocument;
use super::error::{IamCode, IamError};
use super::limits::TAGS_MAX;
use super::names::Name;
use super::provider_url::ProviderArn;
use super::rules::differ_without_case;
use super::tags::{TagKey, Tags};

/// An entity that can have tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tagged {
    /// A user.
    User(Name),
    /// A role.
    Role(Name),
    /// A managed policy.
    Policy(PolicyArn),
    /// An OpenID provider.
    Provider(ProviderArn),
}

impl Tagged {
    /// True if keys that differ only in case count as one of what is there. Source: "Tags for IAM
    /// resources" in the IAM User Guide.
    const fn without_case(&self) -> bool {
        matches!(self, Self::User(_) | Self::Role(_))
    }
}

/// Returns the tags `there` with `new` added, or an error if the result would not be allowed. Keys
/// of one request have to differ in more than case, whatever they are tags of: a condition on
/// `aws:RequestTag/` ignores case, and would be about one of two tags.
pub(super) fn check_tags(there: &Tags, new: &Tags, without_case: bool) -> Result<Tags, IamError> {
    if !differ_without_case(new) {
        let message = "Duplicate tag keys found. Please note that Tag keys are case insensitive.";
        return Err(IamError::new(IamCode::InvalidInput, message));
    }
    let mut all = there.clone();
    for (key, value) in new {
        if without_case {
            let folded = key.without_case();
            all.retain(|other, _| other.without_case() != folded);
        }
        all.insert(key.clone(), value.clone());
    }
    if all.len() > TAGS_MAX {
        let message = "The number of tags has reached the maximum limit.";
        return Err(IamError::new(IamCode::LimitExceeded, message));
    }
    Ok(all)
}

impl AccountDocument {
    fn tags_mut(&mut self, of: &Tagged) -> Result<&mut Tags, IamError> {
        match of {
            Tagged::User(name) => Ok(&mut self.user_mut(name)?.tags),
            Tagged::Role(name) => {
                Ok(&mut self.roles.get_mut(name).ok_or_else(|| IamError::no_role(name))?.tags)
            }
            Tagged::Policy(arn) => Ok(&mut self.policy_mut(arn)?.tags),
            Tagged::Provider(arn) => Ok(&mut self.provider_mut(arn)?.tags),
        }
    }

    /// TagUser and the operations like it: a key that exists gets the new value.
    pub fn tag(&mut self, of: &Tagged, new: &Tags) -> Result<(), IamError> {
        let without_case = of.without_case();
        let tags = self.tags_mut(of)?;
        *tags = check_tags(tags, new, without_case)?;
        Ok(())
    }

    /// UntagUser and the operations like it: keys that do not exist are ignored.
    pub fn untag(&mut self, of: &Tagged, keys: &[TagKey]) -> Result<(), IamError> {
        let without_case = of.without_case();
        let is_one = |there: &TagKey| {
            keys.iter()
                .any(|key| key == there || (without_case && key.without_case() == there.without_case()))
        };
        self.tags_mut(of)?.retain(|there, _| !is_one(there));
        Ok(())
    }
}
