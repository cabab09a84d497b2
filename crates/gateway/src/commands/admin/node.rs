//! The XML of IAM's answers as a tree of elements.

use percent_encoding::percent_decode_str;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Map, Value as Json};

/// The largest depth of nested elements. Answers have about ten levels.
const DEPTH_MAX: usize = 32;
/// The names of the elements whose text is a number.
const NUMBERS: [&str; 7] = [
    "AttachmentCount",
    "Groups",
    "MaxSessionDuration",
    "PermissionsBoundaryUsageCount",
    "Policies",
    "Roles",
    "Users",
];
/// The names of the lists in elements that are shown whole. A list without members is `[]` in JSON.
const LISTS: [&str; 3] = ["ClientIDList", "Tags", "ThumbprintList"];
/// The names of the elements whose text is a policy document.
const DOCUMENTS: [&str; 3] = ["AssumeRolePolicyDocument", "Document", "PolicyDocument"];

/// An element: its name, its text and the elements in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The name.
    pub name: String,
    /// The text.
    pub text: String,
    /// The elements in it.
    pub children: Vec<Node>,
}

impl Node {
    /// Reads a document; `None` if it is not well-formed.
    pub fn parse(document: &[u8]) -> Option<Self> {
        let mut reader = Reader::from_reader(document);
        let mut open = vec![Self::default()];
        loop {
            match reader.read_event().ok()? {
                Event::Start(element) => {
                    if open.len() > DEPTH_MAX {
                        return None;
                    }
                    let name = element.local_name().as_ref().to_owned();
                    open.push(Self { name, ..Self::default() });
                }
                Event::Empty(element) => {
                    let name = element.local_name().as_ref().to_owned();
                    open.last_mut()?.children.push(Self { name, ..Self::default() });
                }
                Event::Text(text) => open.last_mut()?.text.push_str(&text),
                Event::GeneralRef(reference) => open.last_mut()?.text.push(character(&reference)?),
                Event::End(_) => {
                    let done = open.pop()?;
                    open.last_mut()?.children.push(done);
                }
                Event::Eof => break,
                _ => {}
            }
        }
        let root = open.pop().filter(|_| open.is_empty())?;
        root.children.into_iter().next()
    }

    /// Returns the first child with a name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the text of the first child with a name; empty if there is none. The text of a
    /// policy document is decoded.
    pub fn text_of(&self, name: &str) -> String {
        let Some(child) = self.child(name) else { return String::new() };
        if DOCUMENTS.contains(&name) { decoded(&child.text) } else { child.text.clone() }
    }

    /// Returns the members of a list.
    pub fn members(&self, name: &str) -> &[Self] {
        self.child(name).map_or(&[], |list| &list.children)
    }

    /// Returns the element as JSON, in the form in which `aws iam` shows it.
    pub fn json(&self) -> Json {
        if self.children.is_empty() {
            return self.leaf();
        }
        if self.children.iter().all(|child| child.name == "member") {
            return self.children.iter().map(Self::json).collect();
        }
        let members = self.children.iter().map(|child| (child.name.clone(), child.json()));
        Json::Object(members.collect::<Map<_, _>>())
    }

    fn leaf(&self) -> Json {
        let text = &self.text;
        if DOCUMENTS.contains(&&*self.name) {
            let document = decoded(text);
            return serde_json::from_str(&document).unwrap_or(Json::String(document));
        }
        if LISTS.contains(&&*self.name) {
            return Json::Array(Vec::new());
        }
        let is_flag = self.name.starts_with("Is") || self.name == "OwnsTree";
        match &**text {
            "true" | "false" if is_flag => Json::Bool(text == "true"),
            _ if NUMBERS.contains(&&*self.name) => {
                text.parse::<u64>().map_or_else(|_| text.clone().into(), Json::from)
            }
            _ => text.clone().into(),
        }
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Returns the character for a reference, which is one of XML's own names or a number.
fn character(reference: &str) -> Option<char> {
    Some(match reference {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = reference.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_read() {
        let root = Node::parse(
            b"<R xmlns=\"n\"><X><Users><member><UserName>a&amp;&#x62;</UserName><Tags></Tags></member></Users>\
              <ThumbprintList/><Tags><member><Key>cost</Key><Value>007</Value></member></Tags><IsTruncated>false</IsTruncated><PolicyDocument>%7B%22a%22%3A%201%7D</PolicyDocument><Empty/></X></R>",
        );
        let root = root.unwrap();
        let result = root.child("X").unwrap();
        assert_eq!(result.members("Users")[0].text_of("UserName"), "a&b");
        assert_eq!(result.text_of("PolicyDocument"), "{\"a\": 1}");
        assert_eq!(
            result.json(),
            json!({ "Users": [{ "UserName": "a&b", "Tags": [] }], "IsTruncated": false,
                    "ThumbprintList": [], "Tags": [{ "Key": "cost", "Value": "007" }],
                    "PolicyDocument": { "a": 1 }, "Empty": "" })
        );
    }

    #[test]
    fn what_is_no_document() {
        for bad in ["", "hello", "<a>", "<a></b>", "<a>&nope;</a>", "</a>"] {
            assert_eq!(Node::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(Node::parse("<a>".repeat(100).as_bytes()), None);
    }
}
