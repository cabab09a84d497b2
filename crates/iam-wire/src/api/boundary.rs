//! The inputs and answers about boundaries of users and roles.

use crate::output::elements;
use crate::xml::{Element, Text, Xml};

elements! {
    /// The policy that limits a user or role.
    AttachedPermissionsBoundary<'a> {
        "PermissionsBoundaryType" permissions_boundary_type: BoundaryType,
        "PermissionsBoundaryArn" permissions_boundary_arn: Text<'a>,
    }
}

/// The type of every boundary: `Policy` in IAM's answers (recorded; the API model says
/// `PermissionsBoundaryPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundaryType;

impl Element for BoundaryType {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.text(name, "Policy");
    }
}

impl<'a> AttachedPermissionsBoundary<'a> {
    /// Makes a boundary from the ARN of its policy.
    pub fn new(arn: impl Into<Text<'a>>) -> Self {
        Self { permissions_boundary_type: BoundaryType, permissions_boundary_arn: arn.into() }
    }
}
