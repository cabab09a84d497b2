use crate::sealing::MasterKeys;
use crate::tokens::TokenKeys;

/// The keys that secrets and tokens are sealed with. What was made of a document is made of them,
/// too.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The master keys; `None` if the server has none.
    pub master: Option<MasterKeys>,
    /// The keys of tokens.
    pub tokens: Option<TokenKeys>,
}

impl Keys {
    pub fn new(master: Option<MasterKeys>) -> Self {
        let tokens = master.as_ref().map(TokenKeys::new);
        Self { master, tokens }
    }
}
