use std::io::{self, BufRead, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

use super::malformed::malformed;
use super::namespace::Namespaces;
use crate::error::{ErrorCode, Result};
use crate::limits::{
    XML_DEPTH_MAX, XML_ELEMENTS_MAX, XML_ID_BYTES_MAX, XML_TAG_BYTES_MAX, XML_TOKEN_BYTES_MAX,
};

/// A request's document, which is read from start to end, one child after the other. Only the token
/// that is being read is in memory, with at most [`XML_TOKEN_BYTES_MAX`].
///
/// Every element that [`Document::child`] names must be consumed: by [`Document::text`], by
/// [`Document::skip`], or by calls of `child` until it returns `None`. Elements are in S3's
/// namespace or in none, and are known by their local names. There are no attributes with a meaning
/// for the request, no entities except the five predefined ones and character references, and no
/// DTD. A document that is not well-formed or exceeds a limit is `MalformedXML`, and so is a source
/// that fails.
pub struct Document<'a> {
    tokens: Tokens<'a>,
    position: Position,
    /// The name of the element that was entered last.
    name: String,
}

impl<'a> Document<'a> {
    /// Opens a document of at most `bytes_max` bytes, whose root must be `root`, and enters the
    /// root.
    ///
    /// A body without bytes is `MissingRequestBodyError`.
    pub fn open(body: &'a mut dyn BufRead, root: &str, bytes_max: usize) -> Result<Self> {
        if is_empty(body)? {
            return Err(ErrorCode::MissingRequestBodyError.into());
        }
        let tokens = Tokens::new(body, bytes_max);
        let mut document = Self { tokens, position: Position::default(), name: String::new() };
        let mut first = true;
        loop {
            match document.tokens.next()? {
                Event::Decl(declaration) if first => {
                    let ascii_only = is_foreign(&declaration)?;
                    document.tokens.ascii_only = ascii_only;
                }
                Event::Start(start) => {
                    document.position.enter(&start)?;
                    return if local_name(&start) == root { Ok(document) } else { Err(malformed()) };
                }
                Event::Text(text) if is_space(&text) => {}
                Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
            first = false;
        }
    }

    /// Enters the next child of the open element, and returns its name without a prefix. If there
    /// are no more, leaves the element and returns `None`.
    pub fn child(&mut self) -> Result<Option<&str>> {
        loop {
            match self.tokens.next()? {
                Event::Start(start) => {
                    self.position.enter(&start)?;
                    self.name.clear();
                    self.name.push_str(local_name(&start));
                    break;
                }
                Event::End(_) => return self.leave().map(|()| None),
                Event::Text(text) if is_space(&text) => {}
                Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
        }
        Ok(Some(&self.name))
    }

    /// Returns the text of the open element, which may not have children, and leaves the element.
    pub fn text(&mut self) -> Result<String> {
        let mut text = String::new();
        loop {
            match self.tokens.next()? {
                Event::Text(piece) => text.push_str(&piece.xml10_content()),
                Event::CData(piece) => text.push_str(&piece.xml10_content()),
                Event::GeneralRef(reference) => text.push(resolve(&reference)?),
                Event::End(_) => return self.leave().map(|()| text),
                Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
            if text.len() > XML_TOKEN_BYTES_MAX {
                return Err(malformed());
            }
        }
    }

    /// Leaves the open element, with everything in it.
    pub fn skip(&mut self) -> Result<()> {
        let outside = self.position.depth.saturating_sub(1);
        while self.position.depth > outside {
            match self.tokens.next()? {
                Event::Start(start) => self.position.enter(&start)?,
                Event::End(_) => self.leave()?,
                Event::GeneralRef(reference) => drop(resolve(&reference)?),
                Event::Text(_) | Event::CData(_) | Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
        }
        Ok(())
    }

    /// Returns the text of the open element, an id of at most [`XML_ID_BYTES_MAX`], and leaves the
    /// element.
    pub fn id(&mut self) -> Result<String> {
        self.text().and_then(|text| if text.len() > XML_ID_BYTES_MAX { Err(malformed()) } else { Ok(text) })
    }

    /// Leaves the element whose end tag was read. If it was the root, reads on to the end of the
    /// document, and fails if anything but white space, comments and processing instructions
    /// follows.
    fn leave(&mut self) -> Result<()> {
        self.position.depth = self.position.depth.saturating_sub(1);
        while self.position.depth == 0 {
            match self.tokens.next()? {
                Event::Eof => break,
                Event::Text(text) if is_space(&text) => {}
                Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
        }
        Ok(())
    }
}

/// The document's tokens, one at a time.
struct Tokens<'a> {
    reader: Reader<Limited<'a>>,
    buffer: Vec<u8>,
    /// True if the document must be ASCII, since it declares another encoding than UTF-8. In that
    /// encoding, other bytes would be other characters, and so could name other keys.
    ascii_only: bool,
}

impl<'a> Tokens<'a> {
    fn new(source: &'a mut dyn BufRead, bytes_max: usize) -> Self {
        let mut reader = Reader::from_reader(Limited { source, left: bytes_max, token_left: 0 });
        reader.config_mut().expand_empty_elements = true;
        Self { reader, buffer: Vec::new(), ascii_only: false }
    }

    fn next(&mut self) -> Result<Event<'_>> {
        self.buffer.clear();
        self.reader.get_mut().token_left = XML_TOKEN_BYTES_MAX;
        let read = self.reader.read_event_into(&mut self.buffer);
        let event = read.map_err(|error| malformed().caused_by(error))?;
        if event.chars().any(is_illegal) || (self.ascii_only && !event.is_ascii()) {
            return Err(malformed());
        }
        Ok(event)
    }
}

/// The position in the document.
#[derive(Default)]
struct Position {
    depth: usize,
    elements: usize,
    namespaces: Namespaces,
}

impl Position {
    fn enter(&mut self, start: &BytesStart<'_>) -> Result<()> {
        self.depth += 1;
        self.elements += 1;
        if self.depth > XML_DEPTH_MAX || self.elements > XML_ELEMENTS_MAX || start.len() > XML_TAG_BYTES_MAX {
            return Err(malformed());
        }
        self.namespaces.check(start)
    }
}

/// A source that fails when more bytes are read than are allowed, in total or for one token.
struct Limited<'a> {
    source: &'a mut dyn BufRead,
    left: usize,
    token_left: usize,
}

impl BufRead for Limited<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let available = self.source.fill_buf()?;
        let allowed = self.left.min(self.token_left);
        if allowed == 0 && !available.is_empty() {
            return Err(io::Error::other("the XML document, or a token in it, is too long"));
        }
        Ok(&available[..available.len().min(allowed)])
    }

    fn consume(&mut self, amount: usize) {
        self.source.consume(amount);
        self.left = self.left.saturating_sub(amount);
        self.token_left = self.token_left.saturating_sub(amount);
    }
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

/// True if a body has no bytes.
pub(super) fn is_empty(body: &mut dyn BufRead) -> Result<bool> {
    body.fill_buf().map(<[u8]>::is_empty).map_err(|error| malformed().caused_by(error))
}

/// Fills a slot that may be filled once. A second value is `MalformedXML`: if an object has two
/// keys, for example, it is not clear which one is meant.
pub(super) fn set_once<T>(slot: &mut Option<T>, value: T) -> Result<()> {
    if slot.replace(value).is_some() { Err(malformed()) } else { Ok(()) }
}

fn local_name<'a>(start: &'a BytesStart<'_>) -> &'a str {
    start.name().local_name().into_inner()
}

/// True for characters that XML 1.0, section 2.2, does not allow in a document.
const fn is_illegal(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

fn is_space(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
}

/// True if the declared encoding is neither UTF-8 nor ASCII.
fn is_foreign(declaration: &BytesDecl<'_>) -> Result<bool> {
    let encoding = declaration.encoding().transpose().map_err(|_| malformed())?;
    let known = ["utf-8", "utf8", "us-ascii"];
    Ok(encoding.is_some_and(|name| !known.iter().any(|k| name.eq_ignore_ascii_case(k))))
}

/// Returns the character of a predefined entity or a character reference. References to control
/// characters are accepted although XML 1.0 forbids them, since our own listings (and S3's) write
/// keys in this way.
fn resolve(reference: &BytesRef<'_>) -> Result<char> {
    let name: &str = reference;
    let number = match name {
        "amp" => return Ok('&'),
        "lt" => return Ok('<'),
        "gt" => return Ok('>'),
        "quot" => return Ok('"'),
        "apos" => return Ok('\''),
        _ => name.strip_prefix('#').ok_or_else(malformed)?,
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(malformed());
    }
    let code = u32::from_str_radix(digits, radix).map_err(|_| malformed())?;
    char::from_u32(code).ok_or_else(malformed)
}
