use crate::action::Action;
use crate::service::Service;
use crate::xml::Xml;

/// The answer of an action that has members.
pub trait Output {
    /// The action.
    const ACTION: Action;

    /// Writes the members, in the model's order.
    fn write_members(&self, xml: &mut Xml);

    /// Writes the document.
    fn render(&self, request_id: &str) -> String {
        render(Self::ACTION, request_id, Some(&|xml| self.write_members(xml)))
    }
}

/// Writes the answer of an action that has no members.
pub fn render_done(action: Action, request_id: &str) -> String {
    render(action, request_id, None)
}

/// Writes a document: `<XResponse><XResult>members</XResult><ResponseMetadata/></XResponse>`, where
/// an action without members has no result. There is no XML declaration: IAM and STS send none.
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

/// Makes structures of answers: each member has its name in the API model. The order of members is
/// the model's.
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

/// Makes the answers of actions, as `elements!` makes structures.
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
