/// A result whose error is a sentence for people about what is wrong in their configuration.
pub type Result<T> = std::result::Result<T, String>;
