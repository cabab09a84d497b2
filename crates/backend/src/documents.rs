use std::collections::BTreeMap;

use bytes::Bytes;

macro_rules! kinds {
    ($($variant:ident $name:literal $in_state:literal)*) => {
        /// The kind of a bucket's configuration document.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DocumentKind { $(#[doc = concat!("The ", $name, ".")] $variant,)* }

        impl DocumentKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name of the kind in the log and in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// True if the document is needed before requests are authorized, or for performing
            /// them correctly. [`crate::BucketState`] has these documents; others are read with
            /// [`crate::Backend::bucket_document`].
            pub const fn is_in_state(self) -> bool {
                match self { $(Self::$variant => $in_state,)* }
            }
        }
    };
}

kinds! {
    Acl "ACL" true
    Policy "policy" true
    PublicAccessBlock "public access block" true
    Versioning "versioning configuration" true
    ObjectLock "Object Lock configuration" true
    Encryption "encryption configuration" true
    Cors "CORS configuration" true
    Website "website configuration" true
    Lifecycle "lifecycle configuration" false
    Inventory "inventory configurations" false
    Notification "notification configuration" false
    Tagging "tags" false
    OwnershipControls "ownership controls" true
}

/// Documents by kind, as bytes: the storage does not interpret them.
pub type Documents = BTreeMap<DocumentKind, Bytes>;

/// Changes of documents by kind: the new document, or `None` to delete it. Documents of other kinds
/// stay.
pub type DocumentChanges = BTreeMap<DocumentKind, Option<Bytes>>;

/// The largest size of all documents of a bucket together, in bytes
/// ([`crate::BackendError::TooLarge`]).
pub const DOCUMENTS_BYTES_MAX: usize = 1 << 20;
