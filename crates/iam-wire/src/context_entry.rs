/// The values of a condition key. Each operator of a condition reads them as values of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextEntry<'f> {
    /// The key.
    pub name: &'f str,
    /// Its values.
    pub values: Vec<&'f str>,
}
