//! Finds statements in the text of a policy, and the policy's variables. The text must have been
//! accepted as a policy before.

use iam_wire::api::Position;

/// The positions behind the first and the last brace of a statement, as IAM has them (recorded).
pub(super) type Place = (Position, Position);

/// Returns the places of all statements of a policy, in one pass over its text.
pub(super) fn places(text: &str) -> Vec<Place> {
    let Some(begin) = statements(text) else { return Vec::new() };
    let is_list = text[begin..].starts_with('[');
    let at = if is_list { begin + 1 } else { begin };
    let mut reached = Reached { text, at: 0, line: 1, column: 1 };
    let found = objects(text, at, is_list);
    found.map_while(|(start, end)| Some((reached.go_to(start + 1)?, reached.go_to(end + 1)?))).collect()
}

/// A place in a text up to which lines and columns are counted.
struct Reached<'t> {
    text: &'t str,
    at: usize,
    line: u32,
    column: u32,
}

impl Reached<'_> {
    /// Counts on to a later place, and returns its position.
    fn go_to(&mut self, at: usize) -> Option<Position> {
        for character in self.text.get(self.at..at)?.chars() {
            if character == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.at = at;
        Some(Position { line: self.line, column: self.column })
    }
}

/// Returns the offset of the value of `Statement`, which is a member of the outermost object.
fn statements(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let end = string_end(text, at)?;
                let after = text[end..].trim_start();
                if depth == 1 && &text[at..end] == "\"Statement\"" && after.starts_with(':') {
                    let value = after[1..].trim_start();
                    return Some(text.len() - value.len());
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the offset after the end of a string that begins at `begin`.
fn string_end(text: &str, begin: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = begin + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Returns the offsets of the begin and the end of each object in a list. If `is_list` is false,
/// there is only one object, outside of a list.
fn objects(text: &str, begin: usize, is_list: bool) -> impl Iterator<Item = (usize, usize)> {
    let (mut at, mut depth, mut start, mut is_over) = (begin, 0_usize, begin, false);
    std::iter::from_fn(move || {
        while !is_over {
            match text.as_bytes().get(at)? {
                b'"' => {
                    at = string_end(text, at)?;
                    continue;
                }
                b'{' => {
                    start = if depth == 0 { at } else { start };
                    depth += 1;
                }
                b'}' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        at += 1;
                        is_over = !is_list;
                        return Some((start, at - 1));
                    }
                }
                b']' if depth == 0 => is_over = true,
                _ => {}
            }
            at += 1;
        }
        None
    })
}

/// Returns the names of the condition keys that a policy uses as variables, such as
/// `${aws:username}`.
pub(super) fn variables(text: &str) -> Vec<String> {
    let pieces = text.split("${").skip(1).filter_map(|piece| piece.split_once('}'));
    let names = pieces.map(|(inner, _)| inner.split(',').next().unwrap_or_default().trim());
    names.filter(|name| name.contains(':')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_their_place() {
        let of = |text: &str, number| {
            let place = places(text).into_iter().nth(number);
            place.map(|(start, end)| [start.line, start.column, end.line, end.column])
        };
        let text = "{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [\n    { \"Sid\": \"}]\", \"Condition\": {\"a\": {}} },\n    {\n    }\n  ]\n}";
        assert_eq!(of(text, 0), Some([4, 6, 4, 44]));
        assert_eq!(of(text, 1), Some([5, 6, 6, 6]));
        assert_eq!(of(text, 2), None);
        let one = r#"{"Id":"Statement","Statement":{"Effect":"Allow","Sid":"\"}"}}"#;
        assert_eq!((of(one, 0), of(one, 1)), (Some([1, 32, 1, 61]), None));
        assert_eq!(of("{}", 0), None);
    }

    #[test]
    fn variables_are_found() {
        let text = r#"{"Resource": ["a/${aws:username}/${aws:PrincipalTag/team, 'x'}", "${*}", "${"]}"#;
        assert_eq!(variables(text), ["aws:username", "aws:PrincipalTag/team"]);
    }
}
