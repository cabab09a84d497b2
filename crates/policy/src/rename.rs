//! The replacement of the names of principals in a document, which stays otherwise as it is.

use crate::json::{Node, Value, read};
use crate::principals::is_name;

/// Replaces the names of the users, roles and sessions that a document has as principals, and
/// leaves the rest of the text as it is. `rename` gets each name of the kind `AWS` except `"*"`,
/// and returns the new name; `None` keeps the old one. Returns `None` if no name changes.
///
/// A document that is not JSON has no principals. An error is one that `rename` has returned.
pub fn rename<E>(
    document: &str,
    rename: &mut dyn FnMut(&str) -> Result<Option<String>, E>,
) -> Result<Option<String>, E> {
    let Ok(read) = read(document) else { return Ok(None) };
    let mut named = Vec::new();
    principals(&read.root, &mut named);
    named.sort_unstable_by_key(|(at, _)| *at);
    let (mut renamed, mut copied) = (String::new(), 0);
    for (at, name) in named {
        let Some(new) = rename(name)?.filter(|new| is_written_plainly(new)) else { continue };
        renamed.push_str(&document[copied..at]);
        renamed.extend(["\"", &new, "\""]);
        copied = at + text_bytes(&document[at..]);
    }
    if copied == 0 {
        return Ok(None);
    }
    renamed.push_str(&document[copied..]);
    Ok(Some(renamed))
}

/// True for a name that can be put between quotes as it is, such as all ARNs and unique ids. A name
/// for which that is not certain does not replace the old one.
fn is_written_plainly(name: &str) -> bool {
    name.split(':').all(|part| part.is_empty() || is_name(part))
}

/// Finds the principals of all statements, with the offsets in bytes at which they begin.
fn principals<'n>(root: &'n Node<'_>, named: &mut Vec<(usize, &'n str)>) {
    for statement in all(member(root, "Statement")) {
        let lists = ["Principal", "NotPrincipal"].into_iter().filter_map(|name| member(statement, name));
        for node in lists.filter_map(|list| member(list, "AWS")).flat_map(|names| all(Some(names))) {
            match &node.value {
                Value::Text(text) if text != "*" => named.push((node.at, text)),
                _ => {}
            }
        }
    }
}

fn member<'n, 'a>(node: &'n Node<'a>, name: &str) -> Option<&'n Node<'a>> {
    let Value::Object(members) = &node.value else { return None };
    members.iter().find(|(member, _)| member.text == name).map(|(_, value)| value)
}

/// Returns the items of a list, or a value that is not a list as the only item.
fn all<'n, 'a>(node: Option<&'n Node<'a>>) -> &'n [Node<'a>] {
    match node {
        None => &[],
        Some(Node { value: Value::Array(items), .. }) => items,
        Some(alone) => std::slice::from_ref(alone),
    }
}

/// Returns the length in bytes of the quoted text with which a piece of a document begins.
fn text_bytes(piece: &str) -> usize {
    let mut is_escaped = false;
    let end = piece.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(piece.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upper(document: &str) -> Option<String> {
        let mut rename = |name: &str| Ok::<_, ()>(name.contains("user").then(|| name.to_uppercase()));
        super::rename(document, &mut rename).unwrap()
    }

    #[test]
    fn nothing_but_principals_changes() {
        let document = |bob: &str, ann: &str, not: &str| {
            format!(
                r#"{{"Id":"user/bob", "Statement" : [
                {{"Principal" : {{"AWS":[{bob} , "*", "111122223333", {ann}],"Federated":"user/bob"}},
                  "Resource":"arn:aws:s3:::user/bob", "Condition":{{"StringLike":{{"AWS":"user/bob"}}}}}},
                {{"NotPrincipal":{{"AWS":{not}}}}}, {{"Principal":"*"}} ] }}"#
            )
        };
        let before = document("\"user/bob\"", r#""a:user\/ann""#, "\"user/\u{65}\"");
        let after = document("\"USER/BOB\"", "\"A:USER/ANN\"", "\"USER/E\"");
        assert_eq!(upper(&before).as_deref(), Some(&*after));
        assert_eq!(upper(&after), None);
        assert_eq!(upper(r#"{"Statement":{"Principal":{"AWS":"user/\"bob"}}}"#), None);
        let alone = r#"{"Statement":{"Principal":{"AWS":"user"}}}"#;
        assert_eq!(upper(alone).as_deref(), Some(&*alone.replace("user", "USER")));
        for none in ["", "{", "[]", r#"{"Statement":[1]}"#, r#"{"Statement":{"Principal":{"AWS":[{}]}}}"#] {
            assert_eq!(upper(none), None, "{none}");
        }
    }

    #[test]
    fn a_text_ends_at_its_last_quote() {
        for (piece, bytes) in [(r#""a","b""#, 3), (r#""\"",1"#, 4), (r#""\\""#, 4), (r#""""#, 2)] {
            assert_eq!(text_bytes(piece), bytes, "{piece}");
        }
    }

    #[test]
    fn an_error_ends_it() {
        let refused = rename(r#"{"Statement":{"Principal":{"AWS":"user"}}}"#, &mut |name| {
            Err::<Option<String>, _>(name.to_owned())
        });
        assert_eq!(refused, Err("user".to_owned()));
    }
}
