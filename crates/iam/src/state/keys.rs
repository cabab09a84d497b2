use crate::sealing::MasterKeys;
use crate::tokens::TokenKeys;

/// The keys that secrets and tokens are sealed with. If they change, the states of accounts are
/// made anew.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The master keys; `None` if the server has none.
    pub master: Option<MasterKeys>,
    /// The keys of tokens; `None` if the server has no master key.
    pub tokens: Option<TokenKeys>,
}

impl Keys {
    pub fn new(master: Option<MasterKeys>) -> Self {
        let tokens = master.as_ref().map(TokenKeys::new);
        Self { master, tokens }
    }
}
