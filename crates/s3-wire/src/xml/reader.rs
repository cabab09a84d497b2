use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

use crate::Result;
use crate::error::{ErrorCode, S3Error};
use crate::limits::{XML_DEPTH_MAX, XML_ELEMENTS_MAX, XML_TAG_BYTES_MAX};

/// A request's document, read from start to end by pulling one child after the other.
///
/// Every element that [`Document::child`] gives must be used up by [`Document::text`], by [`Document::skip`] or by
/// asking for its children until there are none. Namespaces are not looked at, only local names. There are no
/// entities but the five predefined ones and character references, and no DTD. All that is not well-formed, or beyond
/// a limit, is `MalformedXML`.
pub struct Document<'a> {
    reader: Reader<&'a [u8]>,
    depth: usize,
    elements: usize,
}

/// A start tag.
pub struct Element<'a>(BytesStart<'a>);

impl Element<'_> {
    /// The name without any prefix.
    pub fn name(&self) -> &str {
        self.0.name().local_name().into_inner()
    }
}

impl<'a> Document<'a> {
    /// Opens a document whose root is `root` and enters the root.
    ///
    /// A body without bytes is `MissingRequestBodyError`.
    pub fn open(body: &'a [u8], root: &str, bytes_max: usize) -> Result<Self> {
        if body.is_empty() {
            return Err(ErrorCode::MissingRequestBodyError.into());
        }
        if body.len() > bytes_max {
            return Err(malformed());
        }
        let text = str::from_utf8(body).map_err(|_| malformed())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.chars().any(is_illegal) {
            return Err(malformed());
        }
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        let mut document = Self { reader, depth: 0, elements: 0 };
        let mut first = true;
        loop {
            match document.event()? {
                Event::Decl(declaration) if first => check_encoding(&declaration, text)?,
                Event::Start(start) => {
                    let element = document.enter(start)?;
                    return if element.name() == root { Ok(document) } else { Err(malformed()) };
                }
                Event::Text(text) if is_space(&text) => {}
                Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
            first = false;
        }
    }

    /// Enters the next child of the element that is open; `None` where there are no more, and the element is left.
    pub fn child(&mut self) -> Result<Option<Element<'a>>> {
        loop {
            match self.event()? {
                Event::Start(start) => return self.enter(start).map(Some),
                Event::End(_) => return self.leave().map(|()| None),
                Event::Text(text) if is_space(&text) => {}
                Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
        }
    }

    /// The text of the element that is open, which may not have children; the element is left.
    pub fn text(&mut self) -> Result<Cow<'a, str>> {
        let mut text = Cow::Borrowed("");
        loop {
            match self.event()? {
                Event::Text(piece) => append(&mut text, piece.xml10_content()),
                Event::CData(piece) => append(&mut text, piece.xml10_content()),
                Event::GeneralRef(reference) => text.to_mut().push(resolve(&reference)?),
                Event::End(_) => return self.leave().map(|()| text),
                Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
        }
    }

    /// Leaves the element that is open with all that is in it.
    pub fn skip(&mut self) -> Result<()> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside {
            match self.event()? {
                Event::Start(start) => drop(self.enter(start)?),
                Event::End(_) => self.leave()?,
                Event::GeneralRef(reference) => drop(resolve(&reference)?),
                Event::Text(_) | Event::CData(_) | Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
        }
        Ok(())
    }

    /// The text of the element that is open, as an unsigned number.
    pub fn number(&mut self) -> Result<u64> {
        let text = self.text()?;
        let text = text.trim();
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(malformed());
        }
        text.parse().map_err(|_| malformed())
    }

    /// The text of the element that is open, as a truth value.
    pub fn boolean(&mut self) -> Result<bool> {
        match self.text()?.trim() {
            "1" => Ok(true),
            "0" => Ok(false),
            text if text.eq_ignore_ascii_case("true") => Ok(true),
            text if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(malformed()),
        }
    }

    fn event(&mut self) -> Result<Event<'a>> {
        self.reader.read_event().map_err(|error| malformed().caused_by(error))
    }

    fn enter(&mut self, start: BytesStart<'a>) -> Result<Element<'a>> {
        self.depth += 1;
        self.elements += 1;
        if self.depth > XML_DEPTH_MAX || self.elements > XML_ELEMENTS_MAX || start.len() > XML_TAG_BYTES_MAX {
            return Err(malformed());
        }
        Ok(Element(start))
    }

    /// Counts an end tag; behind the root's there may be nothing but space and comments.
    fn leave(&mut self) -> Result<()> {
        self.depth = self.depth.saturating_sub(1);
        while self.depth == 0 {
            match self.event()? {
                Event::Eof => break,
                Event::Text(text) if is_space(&text) => {}
                Event::Comment(_) | Event::PI(_) => {}
                _ => return Err(malformed()),
            }
        }
        Ok(())
    }
}

/// `MalformedXML`.
pub(super) fn malformed() -> S3Error {
    ErrorCode::MalformedXML.into()
}

/// Fills a slot that may be filled once: two keys for one object leave open which one is meant.
pub(super) fn set_once<T>(slot: &mut Option<T>, value: T) -> Result<()> {
    if slot.replace(value).is_some() { Err(malformed()) } else { Ok(()) }
}

/// What XML 1.0, section 2.2, does not allow in a document.
const fn is_illegal(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

fn is_space(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
}

fn append<'a>(text: &mut Cow<'a, str>, piece: Cow<'a, str>) {
    if text.is_empty() {
        *text = piece;
    } else {
        text.to_mut().push_str(&piece);
    }
}

/// A declared encoding other than ours would give other characters, and so name other keys, unless all is ASCII.
fn check_encoding(declaration: &BytesDecl<'_>, text: &str) -> Result<()> {
    let encoding = declaration.encoding().transpose().map_err(|_| malformed())?;
    let known = ["utf-8", "utf8", "us-ascii"];
    match encoding {
        Some(name) if !text.is_ascii() && !known.iter().any(|k| name.eq_ignore_ascii_case(k)) => {
            Err(malformed())
        }
        _ => Ok(()),
    }
}

/// A predefined entity or a character reference. References to control characters are taken although XML 1.0 forbids
/// them, since our own listings (and S3's) write keys that way.
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
