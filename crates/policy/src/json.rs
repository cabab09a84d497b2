//! A reader of JSON that keeps the place of each value.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::fault::Fault;
use crate::limits::DEPTH_MAX;

/// A value, and the offset in bytes at which it begins.
#[derive(Debug, PartialEq)]
pub struct Node<'a> {
    pub at: usize,
    pub value: Value<'a>,
}

/// The name of a member of an object, and the offset in bytes at which it begins.
#[derive(Debug, PartialEq)]
pub struct Name<'a> {
    pub at: usize,
    pub text: Cow<'a, str>,
}

#[derive(Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// The text of a number.
    Number(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    /// The members, in the order of the text; no name occurs twice.
    Object(Vec<(Name<'a>, Node<'a>)>),
}

/// A JSON document.
#[derive(Debug)]
pub struct Document<'a> {
    pub root: Node<'a>,
    /// The number of bytes of white space between values.
    pub white_bytes: usize,
}

/// Reads a document. The error has the offset in bytes at which it was found.
pub fn read(text: &str) -> Result<Document<'_>, (usize, Fault)> {
    let mut reader = Reader { text, at: 0, white_bytes: 0 };
    let root = reader.value(0).map_err(|fault| (reader.at, fault))?;
    reader.skip_white();
    if reader.at < text.len() {
        return Err((reader.at, Fault::Json("something follows the object")));
    }
    if let Some(twice) = duplicate(&root) {
        return Err(twice);
    }
    Ok(Document { root, white_bytes: reader.white_bytes })
}

/// Finds the first name that occurs twice in an object.
fn duplicate(node: &Node<'_>) -> Option<(usize, Fault)> {
    match &node.value {
        Value::Array(items) => items.iter().find_map(duplicate),
        Value::Object(members) => {
            let mut seen = HashSet::with_capacity(members.len());
            members.iter().find_map(|(name, value)| {
                if seen.insert(&*name.text) {
                    duplicate(value)
                } else {
                    Some((name.at, Fault::Duplicate(name.text.clone().into_owned())))
                }
            })
        }
        _ => None,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    white_bytes: usize,
}

type Read<T> = Result<T, Fault>;

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_white(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
            self.white_bytes += 1;
        }
    }

    /// Skips white space, and then `byte` if it is the next one. Returns whether it was.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_white();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Read<Node<'a>> {
        if depth > DEPTH_MAX {
            return Err(Fault::TooDeep);
        }
        self.skip_white();
        let at = self.at;
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            Some(b'-' | b'0'..=b'9') => Value::Number(self.number()?),
            Some(_) => return Err(Fault::Json("a value must begin here")),
            None => return Err(Fault::Json("it ends too early")),
        };
        Ok(Node { at, value })
    }

    fn word(&mut self, word: &'static str, value: Value<'a>) -> Read<Value<'a>> {
        if !self.text[self.at..].starts_with(word) {
            return Err(Fault::Json("a value must begin here"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Read<Value<'a>> {
        self.at += 1;
        let mut members = Vec::new();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_white();
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(Fault::Json("a name in quotes must be here"));
            }
            let text = self.string()?;
            if !self.take(b':') {
                return Err(Fault::Json("a colon must be here"));
            }
            members.push((Name { at, text }, self.value(depth + 1)?));
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.take(b',') {
                return Err(Fault::Json("a comma or the end of the object must be here"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Read<Value<'a>> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(Fault::Json("a comma or the end of the list must be here"));
            }
        }
    }

    fn number(&mut self) -> Read<&'a str> {
        const WRONG: Fault = Fault::Json("this is not a number");
        let from = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let zero = self.peek() == Some(b'0');
        let digits = self.digits();
        if digits == 0 || (zero && digits > 1) {
            return Err(WRONG);
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(WRONG);
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(WRONG);
            }
        }
        Ok(&self.text[from..self.at])
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - from
    }

    fn string(&mut self) -> Read<Cow<'a, str>> {
        self.at += 1;
        let mut from = self.at;
        let mut made: Option<String> = None;
        loop {
            match self.peek() {
                None => return Err(Fault::Json("a text is not closed")),
                Some(0..0x20) => return Err(Fault::Json("a control character in a text")),
                Some(b'"') => {
                    let last = &self.text[from..self.at];
                    self.at += 1;
                    return Ok(match made {
                        None => Cow::Borrowed(last),
                        Some(made) => Cow::Owned(made + last),
                    });
                }
                Some(b'\\') => {
                    let before = &self.text[from..self.at];
                    self.at += 1;
                    let escaped = self.escaped()?;
                    let made = made.get_or_insert_default();
                    made.push_str(before);
                    made.push(escaped);
                    from = self.at;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Reads the rest of an escape sequence, after the backslash.
    fn escaped(&mut self) -> Read<char> {
        let byte = self.peek().ok_or(Fault::Json("a text is not closed"))?;
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.escaped_unit(),
            _ => {
                self.at -= 1;
                return Err(Fault::Json("there is no such escape"));
            }
        })
    }

    fn escaped_unit(&mut self) -> Read<char> {
        const LONE: Fault = Fault::Json("half a character");
        let first = self.unit()?;
        let code = match first {
            0xd800..0xdc00 => {
                if !self.text[self.at..].starts_with("\\u") {
                    return Err(LONE);
                }
                self.at += 2;
                let second = self.unit()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(LONE);
                }
                0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            other => other,
        };
        char::from_u32(code).ok_or(LONE)
    }

    fn unit(&mut self) -> Read<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.ok_or(Fault::Json("four hexadecimal digits must be here"))?;
        self.at += 4;
        Ok(digits.iter().fold(0, |code, digit| code << 4 | char::from(*digit).to_digit(16).unwrap_or(0)))
    }
}
