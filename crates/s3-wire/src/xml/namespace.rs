use quick_xml::events::BytesStart;
use quick_xml::events::attributes::Attribute;
use quick_xml::name::PrefixDeclaration;

use super::reader::malformed;
use crate::Result;

/// Most prefixes that may stand for S3's namespace in one document.
const PREFIXES_MAX: usize = 8;

/// The prefixes that a document has bound to S3's namespace.
#[derive(Default)]
pub(super) struct Namespaces {
    ours: Vec<String>,
}

impl Namespaces {
    /// `MalformedXML` for an element of another namespace than S3's, and for an attribute: S3's
    /// schema has none in requests, so that one says something which is not understood
    /// (`<Object DryRun="1">`).
    ///
    /// An element in no namespace is taken, as S3 does. Of attributes, declarations of namespaces
    /// and those that belong to XML itself (`xml:`, `xsi:`) say nothing about what is asked for.
    pub(super) fn check(&mut self, start: &BytesStart<'_>) -> Result<()> {
        if !start.attributes_raw().is_empty() {
            for attribute in start.attributes() {
                self.attribute(&attribute.map_err(|error| malformed().caused_by(error))?)?;
            }
        }
        match start.name().prefix() {
            Some(prefix) if !self.ours.iter().any(|ours| ours == prefix.into_inner()) => Err(malformed()),
            _ => Ok(()),
        }
    }

    fn attribute(&mut self, attribute: &Attribute<'_>) -> Result<()> {
        let is_ours = is_of_s3(&attribute.value);
        match attribute.key.as_namespace_binding() {
            Some(PrefixDeclaration::Default) if is_ours || attribute.value.is_empty() => Ok(()),
            Some(PrefixDeclaration::Named(prefix)) => {
                self.ours.retain(|ours| ours != prefix);
                if is_ours && self.ours.len() == PREFIXES_MAX {
                    return Err(malformed());
                }
                self.ours.extend(is_ours.then(|| prefix.to_owned()));
                Ok(())
            }
            None if attribute.key.prefix().is_some_and(|p| matches!(p.into_inner(), "xml" | "xsi")) => Ok(()),
            _ => Err(malformed()),
        }
    }
}

/// True for S3's namespace, in the forms that its documentation has had:
/// `http://s3.amazonaws.com/doc/2006-03-01/`, `http://doc.s3.amazonaws.com/2006-03-01`.
fn is_of_s3(namespace: &str) -> bool {
    let rest = namespace.strip_prefix("http://").or_else(|| namespace.strip_prefix("https://"));
    let rest = rest.map(|rest| rest.strip_prefix("doc.").unwrap_or(rest));
    let Some(path) = rest.and_then(|rest| rest.strip_prefix("s3.amazonaws.com/")) else { return false };
    let path = path.strip_prefix("doc/").unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path) == "2006-03-01"
}
