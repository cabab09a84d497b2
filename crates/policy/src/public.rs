//! The test whether a policy makes its bucket public.
//!
//! Source: "The meaning of "public"" in the S3 User Guide ("Blocking public access to your Amazon
//! S3 storage"). A policy is not public if it grants something only to fixed principals, or only to
//! requests with fixed values of certain condition keys.

use ipnet::IpNet;

use crate::condition::Condition;
use crate::document::{Effect, Policy, Statement};
use crate::operator::Quantifier;
use crate::principals::Principals;

/// The condition keys that restrict a statement to certain requesters if their values are fixed.
/// The first item in the User Guide's list, "an AWS principal, user, role, or service principal",
/// stands for three keys here.
const KEYS: [&str; 13] = [
    "aws:PrincipalAccount",
    "aws:PrincipalArn",
    "aws:PrincipalOrgID",
    "aws:SourceAccount",
    "aws:SourceArn",
    "aws:SourceIp",
    "aws:SourceOwner",
    "aws:SourceVpc",
    "aws:SourceVpce",
    "aws:userid",
    "s3:DataAccessPointAccount",
    "s3:DataAccessPointArn",
    "s3:x-amz-server-side-encryption-aws-kms-key-id",
];

/// The shortest prefixes of IPv4 and IPv6 networks that are not public: networks with shorter
/// prefixes are too large.
const PREFIX_MIN: (u8, u8) = (8, 32);

impl Policy {
    /// True if a statement grants something to everybody, so that the policy is public.
    pub fn is_public(&self) -> bool {
        self.statements.iter().any(Statement::is_public)
    }
}

impl Statement {
    /// True if the statement grants something to everybody. What other statements deny does not
    /// matter.
    pub fn is_public(&self) -> bool {
        self.effect == Effect::Allow
            && self.principals.as_ref().is_some_and(Principals::names_anybody)
            && !self.conditions.iter().any(limits_to_somebody)
    }
}

/// True if the condition holds only for requests with fixed values of one of [`KEYS`].
fn limits_to_somebody(condition: &Condition) -> bool {
    let operator = condition.operator();
    let needs_value =
        !operator.negated && !operator.if_exists && operator.quantifier != Some(Quantifier::All);
    let is_of_requester = condition.key().spec().is_some_and(|spec| KEYS.contains(&spec.name));
    needs_value && is_of_requester && condition.has_fixed_values(is_narrow)
}

fn is_narrow(network: &IpNet) -> bool {
    match network {
        IpNet::V4(network) => network.prefix_len() >= PREFIX_MIN.0,
        IpNet::V6(network) => network.prefix_len() >= PREFIX_MIN.1,
    }
}
