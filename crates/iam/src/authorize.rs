/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requester {
    /// No credentials were sent.
    Anonymous,
    /// The owner of everything.
    Root,
}

/// One action that a request takes on one resource.
#[derive(Debug, Clone, Copy)]
pub struct Action<'a> {
    /// The IAM action (`s3:GetObject`).
    pub name: &'a str,
    /// The bucket, unless the action is about the service.
    pub bucket: Option<&'a str>,
    /// The key, if the action is about an object.
    pub key: Option<&'a str>,
}

/// May it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

/// Decides whether `requester` may take `action`. Without policies and ACLs, root may and others may not.
pub fn decide(requester: &Requester, _action: &Action<'_>) -> Decision {
    match requester {
        Requester::Root => Decision::Allow,
        Requester::Anonymous => Decision::Deny,
    }
}
