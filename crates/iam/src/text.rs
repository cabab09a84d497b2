//! How types that are texts stand in JSON.

/// Writes types as the text that they display, and reads them by their `new`.
macro_rules! as_text {
    ($($type:ty),* $(,)?) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                <$type>::new(&text).map_err(serde::de::Error::custom)
            }
        }
    )*};
}

pub(crate) use as_text;

as_text!(crate::account::AccountId, crate::credential::AccessKeyId);
