//! The JSON form of types that are texts.

/// Implements serialization of types as the text that they display, and deserialization by their
/// `new`.
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

/// Deserializes maps, and refuses a name that occurs twice: serde's own maps keep the last value.
pub(crate) mod unique {
    use std::collections::BTreeMap;
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

    struct Entries<K, V>(PhantomData<(K, V)>);

    impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
        type Value = BTreeMap<K, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((name, value)) = entries.next_entry()? {
                if map.insert(name, value).is_some() {
                    return Err(A::Error::custom("a name is there twice"));
                }
            }
            Ok(map)
        }
    }

    pub(crate) fn deserialize<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        D: Deserializer<'de>,
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
    {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Serializes and deserializes times in whole seconds, in the one form that IAM shows:
/// `2026-11-25T15:10:38Z`.
pub(crate) mod time {
    use std::borrow::Cow;

    use s3_types::Timestamp;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(crate) fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(time)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let time: Timestamp = text.parse().map_err(D::Error::custom)?;
        if time.subsec_nanosecond() != 0 || time.to_string() != text {
            return Err(D::Error::custom("a time is written as 2026-11-25T15:10:38Z"));
        }
        Ok(time)
    }
}

/// Serializes and deserializes optional times in the same form.
pub(crate) mod optional_time {
    use s3_types::Timestamp;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::Serializer;

    #[allow(clippy::ref_option, reason = "serde calls it with this")]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::time::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        #[derive(serde::Deserialize)]
        struct Time(#[serde(with = "super::time")] Timestamp);
        Ok(Option::<Time>::deserialize(deserializer)?.map(|time| time.0))
    }
}
