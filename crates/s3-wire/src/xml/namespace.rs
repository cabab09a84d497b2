use quick_xml::events::BytesStart;
use quick_xml::events::attributes::Attribute;
use quick_xml::name::PrefixDeclaration;

use super::malformed::malformed;
use crate::error::Result;

/// The largest number of prefixes that a document may bind to S3's namespace, and to
/// [`SCHEMA_INSTANCE`].
const PREFIXES_MAX: usize = 8;

/// The namespace of XML Schema Part 1, section 2.7, whose usual prefix is `xsi:`.
const SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The prefixes that the root of a document binds. They hold in the whole document: no other
/// element may bind a prefix, so that a name has the same meaning everywhere.
#[derive(Default)]
pub(super) struct Namespaces {
    is_open: bool,
    /// The prefixes of S3's namespace.
    ours: Vec<String>,
    /// The prefixes of [`SCHEMA_INSTANCE`].
    of_schema: Vec<String>,
}

impl Namespaces {
    /// Refuses an element of another namespace than S3's, and an attribute (`MalformedXML`): S3's
    /// schema has no attributes in requests, so that an attribute has a meaning that this server
    /// does not know (`<Object DryRun="1">`). The first call is for the root.
    ///
    /// An element without a namespace is accepted, as in S3. So are attributes that have no meaning
    /// for the request: declarations of namespaces, attributes of XML itself (`xml:`), and those
    /// that name a schema or type for validators (`xsi:schemaLocation`, `xsi:type`).
    pub(super) fn check(&mut self, start: &BytesStart<'_>) -> Result<()> {
        let is_root = !std::mem::replace(&mut self.is_open, true);
        if !start.attributes_raw().is_empty() {
            // Declarations come first, since a prefix may stand before its declaration. The
            // iterator fails for an attribute that is given twice.
            for declarations in [true, false] {
                for attribute in start.attributes() {
                    let attribute = attribute.map_err(|error| malformed().caused_by(error))?;
                    match attribute.key.as_namespace_binding() {
                        Some(binding) if declarations => self.declare(&binding, &attribute.value, is_root)?,
                        None if !declarations && !self.says_nothing(&attribute) => return Err(malformed()),
                        _ => {}
                    }
                }
            }
        }
        match start.name().prefix() {
            Some(prefix) if !is_among(&self.ours, prefix.into_inner()) => Err(malformed()),
            _ => Ok(()),
        }
    }

    fn declare(&mut self, binding: &PrefixDeclaration<'_>, namespace: &str, is_root: bool) -> Result<()> {
        match *binding {
            PrefixDeclaration::Default if is_of_s3(namespace) || namespace.is_empty() => Ok(()),
            PrefixDeclaration::Named(prefix) if is_root && prefix != "xml" => {
                let bound = match namespace {
                    SCHEMA_INSTANCE => &mut self.of_schema,
                    _ if is_of_s3(namespace) => &mut self.ours,
                    _ => return Ok(()),
                };
                if bound.len() == PREFIXES_MAX {
                    return Err(malformed());
                }
                bound.push(prefix.to_owned());
                Ok(())
            }
            _ => Err(malformed()),
        }
    }

    fn says_nothing(&self, attribute: &Attribute<'_>) -> bool {
        let Some(prefix) = attribute.key.prefix() else { return false };
        let prefix = prefix.into_inner();
        let of_validators = ["schemaLocation", "noNamespaceSchemaLocation", "type"];
        prefix == "xml"
            || is_among(&self.of_schema, prefix)
                && of_validators.contains(&attribute.key.local_name().into_inner())
    }
}

fn is_among(prefixes: &[String], prefix: &str) -> bool {
    prefixes.iter().any(|one| one == prefix)
}

/// True for S3's namespace, in the forms that its documentation has used:
/// `http://s3.amazonaws.com/doc/2006-03-01/`, `http://doc.s3.amazonaws.com/2006-03-01`.
fn is_of_s3(namespace: &str) -> bool {
    let rest = namespace.strip_prefix("http://").or_else(|| namespace.strip_prefix("https://"));
    let rest = rest.map(|rest| rest.strip_prefix("doc.").unwrap_or(rest));
    let Some(path) = rest.and_then(|rest| rest.strip_prefix("s3.amazonaws.com/")) else { return false };
    let path = path.strip_prefix("doc/").unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path) == "2006-03-01"
}
