use std::fmt;

use super::names::{Name, Path};
use crate::account::AccountId;
use crate::text::as_text;

/// The longest ARN that is read, in bytes: prefix, path and name.
const ARN_BYTES_MAX: usize = 700;

/// Makes the ARN of an IAM entity of an account: `arn:aws:iam::ACCOUNT:user/a/NAME`.
pub fn arn_of(account: &AccountId, kind: &str, path: &Path, name: &Name) -> String {
    format!("arn:aws:iam::{account}:{kind}{path}{name}")
}

/// The error for a text that is not the ARN of a managed policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPolicyArn;

impl fmt::Display for InvalidPolicyArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the ARN of a policy is arn:aws:iam::, an account or aws, :policy, its path and its name")
    }
}

impl std::error::Error for InvalidPolicyArn {}

/// The ARN of a managed policy, of an account or of `aws`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyArn(Box<str>);

/// The parts of a policy's ARN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyArnParts {
    /// The account; `None` for `aws`, whose policies are built in.
    pub account: Option<AccountId>,
    /// The path.
    pub path: Path,
    /// The name.
    pub name: Name,
}

impl PolicyArn {
    /// Checks all parts.
    pub fn new(text: &str) -> Result<Self, InvalidPolicyArn> {
        Self::split(text).map(|_| Self(text.into()))
    }

    /// Makes the ARN of a policy of an account.
    pub fn of(account: &AccountId, path: &Path, name: &Name) -> Self {
        Self(arn_of(account, "policy", path, name).into())
    }

    /// Returns the parts. It is never `None`, since [`Self::new`] checked them.
    pub fn parts(&self) -> Option<PolicyArnParts> {
        Self::split(&self.0).ok()
    }

    /// Returns the ARN as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn split(text: &str) -> Result<PolicyArnParts, InvalidPolicyArn> {
        let text = Some(text).filter(|text| text.len() <= ARN_BYTES_MAX).ok_or(InvalidPolicyArn)?;
        let rest = text.strip_prefix("arn:aws:iam::").ok_or(InvalidPolicyArn)?;
        let (account, rest) = rest.split_once(":policy").ok_or(InvalidPolicyArn)?;
        let account = match account {
            "aws" => None,
            id => Some(AccountId::new(id).map_err(|_| InvalidPolicyArn)?),
        };
        let name_at = rest.rfind('/').ok_or(InvalidPolicyArn)? + 1;
        let path = Path::new(&rest[..name_at]).map_err(|_| InvalidPolicyArn)?;
        let name = Name::new(&rest[name_at..]).map_err(|_| InvalidPolicyArn)?;
        Ok(PolicyArnParts { account, path, name })
    }
}

impl fmt::Display for PolicyArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(PolicyArn);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_make_the_arn() {
        for good in [
            "arn:aws:iam::aws:policy/AdministratorAccess",
            "arn:aws:iam::123456789012:policy/a/b:policy/c",
            "arn:aws:iam::123456789012:policy/p,1",
        ] {
            let parts = PolicyArn::new(good).unwrap().parts().unwrap();
            let account = parts.account.map_or("aws".to_owned(), |id| id.to_string());
            assert_eq!(format!("arn:aws:iam::{account}:policy{}{}", parts.path, parts.name), good);
        }
        for bad in [
            "",
            "arn:aws:iam:::policy/p",
            "arn:aws:iam::12345678901:policy/p",
            "arn:aws:iam::aws:policyp",
            "arn:aws:iam::aws:policy/",
            "arn:aws:iam::aws:policy//p",
            "arn:aws:iam::aws:user/p",
            "arn:aws-cn:iam::aws:policy/p",
            "ARN:aws:iam::aws:policy/p",
        ] {
            assert_eq!(PolicyArn::new(bad), Err(InvalidPolicyArn), "{bad}");
        }
    }
}
