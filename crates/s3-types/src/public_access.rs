//! The rules of a bucket about owners of objects and about public access, apart from policies and
//! access lists.

/// The owner of the objects that are written to a bucket (S3 Object Ownership).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ObjectOwnership {
    /// The bucket's owner owns all objects, and access lists are switched off.
    #[default]
    BucketOwnerEnforced,
    /// The bucket's owner owns an object if the request that writes it says so by its canned access
    /// list; otherwise the writer does.
    BucketOwnerPreferred,
    /// The writer owns the object.
    ObjectWriter,
}

crate::words!(ObjectOwnership {
    BucketOwnerEnforced "BucketOwnerEnforced",
    BucketOwnerPreferred "BucketOwnerPreferred",
    ObjectWriter "ObjectWriter",
});

/// The four switches that keep a bucket, or all buckets of an account, from being public.
///
/// Source: "Blocking public access to your Amazon S3 storage" in the S3 User Guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct PublicAccessBlock {
    /// Public access lists are refused in requests.
    pub block_public_acls: bool,
    /// Public grants of access lists have no effect.
    pub ignore_public_acls: bool,
    /// Public policies are refused.
    pub block_public_policy: bool,
    /// A public policy allows nothing to anonymous requesters and to other accounts.
    pub restrict_public_buckets: bool,
}

impl PublicAccessBlock {
    /// All switches are on, as for a new bucket.
    pub const ALL: Self = Self {
        block_public_acls: true,
        ignore_public_acls: true,
        block_public_policy: true,
        restrict_public_buckets: true,
    };

    /// All switches are off.
    pub const NONE: Self = Self {
        block_public_acls: false,
        ignore_public_acls: false,
        block_public_policy: false,
        restrict_public_buckets: false,
    };

    /// Returns the switches with their names, in the order in which S3 answers them.
    pub const fn switches(self) -> [(&'static str, bool); 4] {
        let Self { block_public_acls, ignore_public_acls, block_public_policy, restrict_public_buckets } =
            self;
        [
            ("BlockPublicAcls", block_public_acls),
            ("IgnorePublicAcls", ignore_public_acls),
            ("BlockPublicPolicy", block_public_policy),
            ("RestrictPublicBuckets", restrict_public_buckets),
        ]
    }

    /// Returns the switch with this name; `None` if there is no such switch.
    pub fn switch(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "BlockPublicAcls" => Some(&mut self.block_public_acls),
            "IgnorePublicAcls" => Some(&mut self.ignore_public_acls),
            "BlockPublicPolicy" => Some(&mut self.block_public_policy),
            "RestrictPublicBuckets" => Some(&mut self.restrict_public_buckets),
            _ => None,
        }
    }
}

/// Whether public access is blocked to a bucket without a configuration for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DefaultBlock {
    /// All switches are on.
    #[default]
    On,
    /// All switches are off.
    Off,
}

crate::words!(DefaultBlock {
    On "on",
    Off "off",
});

/// A configuration of a bucket that may have been deleted, which is not the same as one that was
/// never put. The document of the bucket says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept<T> {
    /// Nobody has put or deleted the configuration: the bucket has the default.
    Default,
    /// The configuration was deleted.
    Deleted,
    /// The configuration.
    Set(T),
}

/// The document of a configuration that was deleted.
const DELETED: &str = "deleted";
/// The beginning of the document of a public access block.
const SET: &str = "set";

impl Kept<ObjectOwnership> {
    /// Reads the document; `None` if it is none that [`Kept::document`] returns.
    pub fn read(document: Option<&[u8]>) -> Option<Self> {
        match document.map(std::str::from_utf8) {
            None => Some(Self::Default),
            Some(Ok(DELETED)) => Some(Self::Deleted),
            Some(Ok(word)) => word.parse().ok().map(Self::Set),
            Some(Err(_)) => None,
        }
    }

    /// Returns the document; `None` for [`Kept::Default`], which has none.
    pub fn document(self) -> Option<String> {
        match self {
            Self::Default => None,
            Self::Deleted => Some(DELETED.to_owned()),
            Self::Set(ownership) => Some(ownership.word().to_owned()),
        }
    }

    /// Returns the rule that holds. After a deletion it is that of buckets from before S3 had such
    /// rules.
    pub fn effective(self, default: ObjectOwnership) -> ObjectOwnership {
        match self {
            Self::Default => default,
            Self::Deleted => ObjectOwnership::ObjectWriter,
            Self::Set(ownership) => ownership,
        }
    }
}

impl Kept<PublicAccessBlock> {
    /// Reads the document; `None` if it is none that [`Kept::document`] returns.
    pub fn read(document: Option<&[u8]>) -> Option<Self> {
        let Some(document) = document else { return Some(Self::Default) };
        let text = std::str::from_utf8(document).ok()?;
        if text == DELETED {
            return Some(Self::Deleted);
        }
        let mut words = text.split(' ');
        if words.next() != Some(SET) {
            return None;
        }
        let mut block = PublicAccessBlock::NONE;
        for word in words {
            *block.switch(word)? = true;
        }
        let kept = Self::Set(block);
        (kept.document().as_deref() == Some(text)).then_some(kept)
    }

    /// Returns the document; `None` for [`Kept::Default`], which has none.
    pub fn document(self) -> Option<String> {
        match self {
            Self::Default => None,
            Self::Deleted => Some(DELETED.to_owned()),
            Self::Set(block) => {
                let on = block.switches().into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name);
                Some(std::iter::once(SET).chain(on).collect::<Vec<_>>().join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_say_what_they_were_made_of() {
        let ownership = [Kept::Default, Kept::Deleted].into_iter();
        for kept in ownership.chain(ObjectOwnership::ALL.iter().copied().map(Kept::Set)) {
            let document = kept.document();
            assert_eq!(Kept::<ObjectOwnership>::read(document.as_ref().map(String::as_bytes)), Some(kept));
        }
        for bits in 0..16 {
            let [block_public_acls, ignore_public_acls, block_public_policy, restrict_public_buckets] =
                [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let kept = Kept::Set(PublicAccessBlock {
                block_public_acls,
                ignore_public_acls,
                block_public_policy,
                restrict_public_buckets,
            });
            let document = kept.document();
            assert_eq!(Kept::<PublicAccessBlock>::read(document.as_ref().map(String::as_bytes)), Some(kept));
        }
        let all = Kept::Set(PublicAccessBlock::ALL).document();
        let text = "set BlockPublicAcls IgnorePublicAcls BlockPublicPolicy RestrictPublicBuckets";
        assert_eq!(all.as_deref(), Some(text));
    }

    #[test]
    fn other_documents_are_unknown() {
        for text in ["", "deleted ", "objectwriter", "\u{e9}"] {
            assert_eq!(Kept::<ObjectOwnership>::read(Some(text.as_bytes())), None, "{text:?}");
        }
        let unknown =
            ["", "set ", "set  BlockPublicAcls", "set Other", "set BlockPublicPolicy BlockPublicAcls"];
        for text in unknown.into_iter().chain(["BlockPublicAcls", "set BlockPublicAcls BlockPublicAcls"]) {
            assert_eq!(Kept::<PublicAccessBlock>::read(Some(text.as_bytes())), None, "{text:?}");
        }
        assert_eq!(Kept::<PublicAccessBlock>::read(Some(b"\xff")), None);
    }
}
