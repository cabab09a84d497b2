/// The values of a condition key, as texts. The operator of a condition decides which type they are
/// read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextEntry<'f> {
    /// The name of the key.
    pub name: &'f str,
    /// The values of the key.
    pub values: Vec<&'f str>,
}
