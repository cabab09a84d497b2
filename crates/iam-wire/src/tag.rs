use crate::output::elements;
use crate::xml::Text;

elements! {
    /// A tag, of a request or of an answer.
    Tag<'a> {
        "Key" key: Text<'a>,
        "Value" value: Text<'a>,
    }
}
