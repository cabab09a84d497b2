/// The kind of a requester.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartyKind {
    /// An anonymous requester: no credentials were sent.
    Anonymous,
    /// The root of an account.
    Root,
    /// A user.
    User,
    /// The session of a role that was assumed.
    RoleSession,
    /// The session of a federated user: one that a user or root has asked for under a free name, or
    /// one of a person in the directory.
    FederatedUser,
    /// A service of AWS's.
    Service,
    /// A person for whom an identity provider vouches, and who wants to assume a role.
    Federated,
}

/// The requester, as policies name it.
#[derive(Debug, Clone, Copy)]
pub struct Party<'a> {
    /// The kind.
    pub kind: PartyKind,
    /// The id of the requester's account; empty for a requester without one.
    pub account: &'a str,
    /// The canonical id of the requester's account; empty for a requester without one.
    pub canonical_id: &'a str,
    /// The requester's own ARN (for a session, that of the session). For a service it is the name,
    /// for an identity provider the ARN or name. It is empty for an anonymous requester.
    pub arn: &'a str,
    /// The ARN of the session's role, or of the user who asked for the federated session.
    pub issuer: Option<&'a str>,
    /// The requester's unique id, which stored documents have in place of the ARN; for the session
    /// of a role, it ends with a colon and the session's name.
    pub id: Option<&'a str>,
    /// The unique id of the session's role, or of the user who asked for the federated session.
    pub issuer_id: Option<&'a str>,
}

impl Party<'_> {
    /// Makes an anonymous requester.
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
