use crate::action::Action;
use crate::error::QueryError;
use crate::form::Form;
use crate::reader::{Member, Reader};
use crate::service::Service;

/// The typed input of an action.
pub trait Input<'f>: Sized {
    /// The action.
    const ACTION: Action;

    /// Reads the members. The reader collects all errors.
    fn read(reader: &mut Reader<'f>) -> Self;
}

/// Reads the input of an action from a form.
///
/// All broken constraints are listed in one error. Parameters that the API model has and this
/// server does not implement are refused by name. Parameters that the model does not have are
/// ignored by actions that only read, and refused by others
/// (docs/decisions/0017-refused-not-guessed.md).
pub fn parse<'f, I: Input<'f>>(form: &'f Form<'_>) -> Result<I, QueryError> {
    let row = I::ACTION.info();
    let mut reader = Reader::new(form, row.service);
    let input = I::read(&mut reader);
    reader.done(row.changes)?;
    Ok(input)
}

/// Returns the members of an input with their constraints, for documentation and tests.
pub(crate) fn members<I: Input<'static>>() -> Vec<Member> {
    let mut reader = Reader::new(Form::EMPTY, Service::Iam);
    I::read(&mut reader);
    reader.into_members()
}

/// Defines inputs. Each member names the method of [`Reader`] that reads it; after a semicolon,
/// `refused` lists the members of the API model that are not implemented.
macro_rules! inputs {
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? {
        $($field:ident: $type:ty = $getter:ident($($argument:expr),*),)*
        $(; refused $refused:expr)?
    })*) => {$(
        #[doc = concat!("The input of ", stringify!($name), ".")]
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the members are those of the API model")]
        pub struct $name $(<$life>)? { $(pub $field: $type,)* }

        impl<'f> $crate::input::Input<'f> for $name $(<$life>)? {
            const ACTION: $crate::action::Action = $crate::action::Action::$name;

            #[allow(unused_variables, reason = "some inputs have no members")]
            fn read(reader: &mut $crate::reader::Reader<'f>) -> Self {
                $(let $field = reader.$getter($($argument),*);)*
                $(reader.refuse($refused);)?
                Self { $($field,)* }
            }
        }
    )*};
}

pub(crate) use inputs;
