use super::writer::Writer;

/// Writes the answer of GetBucketPolicyStatus.
pub fn policy_status(is_public: bool) -> String {
    let mut writer = Writer::document("PolicyStatus", 32);
    writer.text("IsPublic", if is_public { "true" } else { "false" });
    writer.finish()
}
