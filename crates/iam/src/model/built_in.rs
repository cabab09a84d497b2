//! The managed policies of the account `aws`: their names, and what they allow. They say the same
//! as AWS's policies, as far as that has a meaning here.

use super::arn::PolicyArn;

/// A policy that always exists, and cannot be changed.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn {
    /// The ARN.
    pub arn: &'static str,
    /// The unique id.
    pub id: &'static str,
    /// The document.
    pub document: &'static str,
}

/// All built-in policies.
pub const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        arn: "arn:aws:iam::aws:policy/AdministratorAccess",
        id: "ANPASLIPWAYADMINISTRA",
        document: r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#,
    },
    BuiltIn {
        arn: "arn:aws:iam::aws:policy/IAMFullAccess",
        id: "ANPASLIPWAYIAMFULLACC",
        document: r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:*","Resource":"*"}]}"#,
    },
    BuiltIn {
        arn: "arn:aws:iam::aws:policy/IAMReadOnlyAccess",
        id: "ANPASLIPWAYIAMREADONL",
        document: r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["iam:Get*","iam:List*","iam:SimulateCustomPolicy","iam:SimulatePrincipalPolicy"],"Resource":"*"}]}"#,
    },
    BuiltIn {
        arn: "arn:aws:iam::aws:policy/AmazonS3FullAccess",
        id: "ANPASLIPWAYSTHREEFULL",
        document: r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}"#,
    },
    BuiltIn {
        arn: "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess",
        id: "ANPASLIPWAYSTHREEREAD",
        document: r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:Get*","s3:List*"],"Resource":"*"}]}"#,
    },
    BuiltIn {
        arn: "arn:aws:iam::aws:policy/slipway/OwnBuckets",
        id: "ANPASLIPWAYOWNBUCKETS",
        document: r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":["arn:aws:s3:::${aws:username}","arn:aws:s3:::${aws:username}/*"]},{"Effect":"Allow","Action":"s3:ListAllMyBuckets","Resource":"*"}]}"#,
    },
];

/// Returns the built-in policy with this ARN; `None` if there is none.
pub fn built_in(arn: &PolicyArn) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|policy| policy.arn == arn.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::Document;
    use crate::unique_id::{IdKind, UniqueId};

    #[test]
    fn built_in_policies_are_policies() {
        let mut ids = Vec::new();
        for policy in BUILT_IN {
            let arn = PolicyArn::new(policy.arn).unwrap();
            assert_eq!(arn.parts().unwrap().account, None);
            assert_eq!(built_in(&arn).unwrap().id, policy.id);
            assert_eq!(UniqueId::new(policy.id).unwrap().kind(), IdKind::Policy);
            assert!(Document::new(policy.document).is_ok());
            let json: serde_json::Value = serde_json::from_str(policy.document).unwrap();
            assert_eq!(json["Version"], "2012-10-17");
            assert!(!ids.contains(&policy.id));
            ids.push(policy.id);
        }
    }
}
