//! The actions about the account as a whole.

use async_trait::async_trait;
use iam::model::Alias;
use iam_wire::api::{self, GetAccountSummaryResult, ListAccountAliasesResult, SummaryMap};
use iam_wire::{QueryError, Text};

use super::call::ActionCall;
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;

fn alias(text: &str) -> Result<Alias, QueryError> {
    Alias::new(text).map_err(|why| error::of_text("AccountAlias", why))
}

#[async_trait]
impl Perform<'_> for api::GetAccountSummary {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let summary = call.document().summary().into_iter();
        let summary_map = SummaryMap(summary.map(|(name, value)| (name, count(value))).collect());
        Ok(rendered(&GetAccountSummaryResult { summary_map }, call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::CreateAccountAlias<'f> {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let alias = alias(self.account_alias)?;
        call.registry.set_alias(call.account_id(), &alias).await.map_err(error::of_iam)?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::DeleteAccountAlias<'f> {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let alias = alias(self.account_alias)?;
        call.change(&|document, _| document.delete_alias(&alias)).await?;
        Ok(done::<Self>(call))
    }
}

#[async_trait]
impl Perform<'_> for api::ListAccountAliases {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let page = self.page.cut(&call.document().alias, |alias| alias.as_str().into());
        let is_truncated = page.is_truncated();
        let account_aliases = page.items.iter().map(|alias| alias.as_str().into()).collect();
        let marker = page.marker.map(Text::Owned);
        Ok(rendered(&ListAccountAliasesResult { account_aliases, is_truncated, marker }, call))
    }
}
