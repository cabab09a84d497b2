/// The kind of requester that a party is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartyKind {
    /// Nobody: no credentials were sent.
    Anonymous,
    /// The root of an account.
    Root,
    /// A user.
    User,
    /// The session of a role that somebody has assumed.
    RoleSession,
    /// The session of a federated user, for which a user has asked.
    FederatedUser,
    /// A service.
    Service,
    /// Somebody whom an identity provider vouches for, who assumes a role.
    Federated,
}

/// The requester, as policies name it.
#[derive(Debug, Clone, Copy)]
pub struct Party<'a> {
    /// The kind.
    pub kind: PartyKind,
    /// The id of its account; empty for who has none.
    pub account: &'a str,
    /// The canonical id of its account; empty for who has none.
    pub canonical_id: &'a str,
    /// Its own ARN, that of the session for one who acts in a session. The name of a service, the
    /// ARN or name of an identity provider; empty for the anonymous.
    pub arn: &'a str,
    /// The ARN of the role of a session, or of the user who federated.
    pub issuer: Option<&'a str>,
    /// Its unique id, which stored documents have in place of the ARN; that of a role's session
    /// ends with a colon and the session's name.
    pub id: Option<&'a str>,
    /// The unique id of the issuer.
    pub issuer_id: Option<&'a str>,
}

impl Party<'_> {
    /// Returns an anonymous requester.
    pub const fn anonymous() -> Self {
        Party {
            kind: PartyKind::Anonymous,
            account: "",
            canonical_id: "",
            arn: "",
            issuer: None,
            id: None,
            issuer_id: None,
        }
    }
}
