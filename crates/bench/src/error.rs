/// A result whose error is a sentence for people.
pub type Result<T> = std::result::Result<T, String>;
