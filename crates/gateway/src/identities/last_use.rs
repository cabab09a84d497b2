//! Writes the last uses of keys regularly, so that all gateways know them (decision 0041).

use std::sync::Arc;
use std::time::Duration;

use backend::seldom::Seldom;
use iam::model::IamError;
use iam::{LastUses, Registry};
use tokio::time::{sleep, timeout};

use crate::limits::IDENTITIES_STOP_TIME_MAX;

/// The time between two writes. Usually there is something new only once an hour.
const INTERVAL: Duration = Duration::from_mins(10);

/// Reads the last uses of all keys and roles. If what gateways have written is damaged, that is
/// logged, and counts as nothing.
pub async fn read(registry: &Registry) -> Result<LastUses<'_>, IamError> {
    static LOGGED: Seldom = Seldom::new(1);
    let uses = registry.last_uses().await?;
    if let Some(why) = uses.damage.as_deref().filter(|_| LOGGED.is_due()) {
        tracing::warn!(
            why,
            "the document with the times at which access keys were last used (used.json) cannot be understood: they \
             count as unused, until the next write replaces a damaged document (logged at most once a minute)"
        );
    }
    Ok(uses)
}

/// Writes the last uses regularly, until the runtime ends.
pub async fn regularly(registry: Arc<Registry>) {
    let failed = Seldom::new(1);
    loop {
        sleep(INTERVAL).await;
        if let Err(error) = registry.write_uses().await
            && failed.is_due()
        {
            tracing::warn!(
                %error,
                "the times at which access keys were last used could not be written (tried again in 10 minutes)"
            );
        }
    }
}

/// Writes the last uses once more, before the server ends.
pub async fn finish(registry: &Registry) {
    let why = match timeout(IDENTITIES_STOP_TIME_MAX, registry.write_uses()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("there was no answer within {IDENTITIES_STOP_TIME_MAX:?}"),
    };
    tracing::warn!(error = %why, "the times at which access keys were last used could not be written before the stop, and are lost");
}
