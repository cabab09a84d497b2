use crate::output::elements;
use crate::xml::Text;

elements! {
    /// A tag in a request or an answer.
    Tag<'a> {
        "Key" key: Text<'a>,
        "Value" value: Text<'a>,
    }
}
