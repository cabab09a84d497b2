use crate::action::Action;
use crate::service::Service;
use crate::xml::Xml;

/// The answer of an action that has members.
pub trait Output {
    /// The action.
    const ACTION: Action;

    /// Writes the members, in the order of the API model.
    fn write_members(&self, xml: &mut Xml);

    /// Writes the whole answer.
    fn render(&self, request_id: &str) -> String {
        render(Self::ACTION, request_id, Some(&|xml| self.write_members(xml)))
    }
}

/// Writes the answer of an action that has no members.
pub fn render_done(action: Action, request_id: &str) -> String {
    render(action, request_id, None)
}

/// Writes an answer: `<XResponse><XResult>members</XResult><ResponseMetadata/></XResponse>`; for an
/// action without members, `<XResult>` is left out. There is no XML declaration, since IAM and STS
/// send none.
pub(crate) fn render(action: Action, request_id: &str, members: Option<&dyn Fn(&mut Xml)>) -> String {
    let row = action.info();
    let [response, result] = ["Response", "Result"].map(|end| format!("{}{end}", row.name));
    let mut xml = Xml::document(&response, Service::namespace(row.service));
    if let Some(members) = members {
        xml.open(&result);
        members(&mut xml);
        xml.close(&result);
    }
    xml.open("ResponseMetadata");
    xml.text("RequestId", request_id);
    xml.close("ResponseMetadata");
    xml.finish(&response)
}

/// Defines structures in answers. Each member has the name and the place that the API model gives
/// it.
macro_rules! elements {
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? { $($element:literal $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the members are those of the API model")]
        pub struct $name $(<$life>)? { $(pub $field: $type,)* }

        impl $(<$life>)? $crate::xml::Element for $name $(<$life>)? {
            fn write(&self, xml: &mut $crate::xml::Xml, name: &str) {
                xml.open(name);
                $($crate::xml::Element::write(&self.$field, xml, $element);)*
                xml.close(name);
            }
        }
    )*};
}

/// Defines the answers of actions, as `elements!` defines structures.
macro_rules! outputs {
    ($($(#[$doc:meta])* $action:ident => $name:ident $(<$life:lifetime>)? {
        $($element:literal $field:ident: $type:ty,)*
    })*) => {$(
        #[doc = concat!("The answer of ", stringify!($action), ".")]
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the members are those of the API model")]
        pub struct $name $(<$life>)? { $(pub $field: $type,)* }

        impl $(<$life>)? $crate::output::Output for $name $(<$life>)? {
            const ACTION: $crate::action::Action = $crate::action::Action::$action;

            #[allow(unused_variables, reason = "some answers have no members")]
            fn write_members(&self, xml: &mut $crate::xml::Xml) {
                $($crate::xml::Element::write(&self.$field, xml, $element);)*
            }
        }
    )*};
}

pub(crate) use {elements, outputs};
