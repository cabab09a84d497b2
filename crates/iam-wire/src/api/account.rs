//! The inputs and answers about the account as a whole.

use crate::input::inputs;
use crate::output::outputs;
use crate::page::Page;
use crate::rule::ALIAS;
use crate::xml::{Element, Text, Xml};

inputs! {
    GetAccountSummary {}
    CreateAccountAlias<'f> {
        account_alias: &'f str = text("AccountAlias", &ALIAS),
    }
    DeleteAccountAlias<'f> {
        account_alias: &'f str = text("AccountAlias", &ALIAS),
    }
    ListAccountAliases {
        page: Page = page(),
    }
}

outputs! {
    GetAccountSummary => GetAccountSummaryResult {
        "SummaryMap" summary_map: SummaryMap,
    }
    ListAccountAliases => ListAccountAliasesResult<'a> {
        "AccountAliases" account_aliases: Vec<Text<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}

/// The numbers of GetAccountSummary: names and values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryMap(pub Vec<(&'static str, u32)>);

impl Element for SummaryMap {
    fn write(&self, xml: &mut Xml, name: &str) {
        xml.open(name);
        for (key, value) in &self.0 {
            xml.open("entry");
            xml.text("key", key);
            value.write(xml, "value");
            xml.close("entry");
        }
        xml.close(name);
    }
}
