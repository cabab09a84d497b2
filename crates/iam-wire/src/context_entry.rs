/// The values of a condition key. What their type is follows from the operators of conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextEntry<'f> {
    /// The key.
    pub name: &'f str,
    /// Its values.
    pub values: Vec<&'f str>,
}
