//! The last uses of keys that a gateway has noted in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use s3_types::Timestamp;
use serde::{Deserialize, Serialize};

/// A service that a key can be used with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsedService {
    /// S3.
    S3,
    /// IAM.
    Iam,
    /// STS.
    Sts,
}

impl UsedService {
    /// Returns the name as it stands in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Iam => "iam",
            Self::Sts => "sts",
        }
    }
}

/// The last use of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastUse {
    /// The beginning of the hour of the use.
    #[serde(with = "crate::text::time")]
    pub hour: Timestamp,
    /// The service.
    pub service: UsedService,
    /// The region.
    pub region: Box<str>,
}

/// The uses that were not written yet.
#[derive(Debug, Default)]
pub(crate) struct Uses(Mutex<HashMap<Box<str>, LastUse>>);

impl Uses {
    pub fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, LastUse>> {
        // Each change is a single call of the map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds uses that could not be written, so that they are written later.
    pub fn put_back(&self, uses: HashMap<Box<str>, LastUse>) {
        let mut there = self.lock();
        for (key, one) in uses {
            there.entry(key).or_insert(one);
        }
    }
}
