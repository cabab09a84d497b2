use std::borrow::Cow;
use std::fmt;

use http::StatusCode;
use s3_wire::auth::ServiceRefusal;
use s3_wire::xml::escape;

use crate::service::Service;
use crate::xml::printable;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $status:ident;)*) => {
        /// The code of an error, with its status. Sources: the errors of botocore's models of IAM
        /// and STS, and "Common errors" in the API references of both.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum QueryCode { $($(#[$doc])* $name,)* }

        impl QueryCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the code in answers.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Returns the status of the answer.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }
        }
    };
}

codes! {
    /// No policy allows the action, or one denies it.
    AccessDenied FORBIDDEN;
    /// Other changes were made in between, again and again.
    ConcurrentModification CONFLICT;
    /// The entity to be deleted is in use, or is not empty.
    DeleteConflict CONFLICT;
    /// The name is taken.
    EntityAlreadyExists CONFLICT;
    /// The session of the key has ended.
    ExpiredToken FORBIDDEN;
    /// A web identity token has ended.
    ExpiredTokenException BAD_REQUEST;
    /// The OpenID provider cannot be reached.
    IDPCommunicationError BAD_REQUEST;
    /// The OpenID provider or the directory does not confirm the identity that was claimed, or the
    /// provider is disabled.
    IDPRejectedClaim FORBIDDEN;
    /// A signature lacks one of its parts.
    IncompleteSignature BAD_REQUEST;
    /// The action does not exist in that version.
    InvalidAction BAD_REQUEST;
    /// The access key that signed is unknown, or may not be used.
    InvalidClientTokenId FORBIDDEN;
    /// A web identity token is not valid, or the provider did not make it.
    InvalidIdentityToken BAD_REQUEST;
    /// The input contradicts itself, or the present state.
    InvalidInput BAD_REQUEST;
    /// A value is not allowed for its parameter.
    InvalidParameterValue BAD_REQUEST;
    /// A quota is used up.
    LimitExceeded CONFLICT;
    /// A policy document is not valid.
    MalformedPolicyDocument BAD_REQUEST;
    /// No action is named.
    MissingAction BAD_REQUEST;
    /// The request is not signed.
    MissingAuthenticationToken FORBIDDEN;
    /// A required parameter is missing.
    MissingParameter BAD_REQUEST;
    /// Nothing has the name.
    NoSuchEntity NOT_FOUND;
    /// The action, or a parameter of it, is not served.
    NotImplemented NOT_IMPLEMENTED;
    /// The policies and tags of a session are too large.
    PackedPolicyTooLarge BAD_REQUEST;
    /// Something failed that is not the client's fault.
    ServiceFailure INTERNAL_SERVER_ERROR;
    /// The store of identities, the directory or the storage cannot be reached.
    ServiceUnavailable SERVICE_UNAVAILABLE;
    /// The signature does not fit the request, or its time or scope is not right.
    SignatureDoesNotMatch FORBIDDEN;
    /// There are too many requests.
    Throttling BAD_REQUEST;
    /// The entity to be changed is built in, or the server only reads.
    UnmodifiableEntity BAD_REQUEST;
    /// A parameter does not have the form that it must have.
    ValidationError BAD_REQUEST;
}

/// An error as a client sees it, and its cause for the log.
#[derive(Debug)]
pub struct QueryError {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    code: QueryCode,
    message: Cow<'static, str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The namespace of errors if the service that is asked is not known yet.
const NO_SERVICE: &str = "http://webservices.amazon.com/AWSFault/2005-15-09";

impl QueryError {
    /// Makes an error.
    pub fn new(code: QueryCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { inner: Box::new(Inner { code, message: message.into(), source: None }) }
    }

    /// Adds the cause, which only the log shows.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Makes the error for an action that policies do not allow. `caller` and `resource` are ARNs,
    /// `permission` is a name such as `iam:CreateUser`. `why` is the end of the sentence, such as
    /// `because no identity-based policy allows the iam:CreateUser action`; `None` if the caller is
    /// not to know the reason. The message contains nothing that the client did not send, but for
    /// the kind of policy that refuses the action.
    pub fn access_denied(caller: &str, permission: &str, resource: &str, why: Option<&str>) -> Self {
        let mut message =
            format!("User: {caller} is not authorized to perform: {permission} on resource: {resource}");
        if let Some(why) = why {
            message = format!("{message} {why}");
        }
        Self::new(QueryCode::AccessDenied, message)
    }

    /// Makes the error for an action of ours that only the administrator of the tree may use,
    /// whatever policies say.
    pub fn not_administrator(caller: &str, action: &str) -> Self {
        let message = format!(
            "User: {caller} is not authorized to perform: {action} because only the key that the server was started \
             with may, whatever policies allow"
        );
        Self::new(QueryCode::AccessDenied, message)
    }

    /// Makes the error of GetAccessKeyLastUsed for a key that the caller may not see or that does
    /// not exist: IAM does not reveal which (recorded).
    pub fn access_key_hidden(caller: &str, access_key: &str) -> Self {
        let message = format!(
            "User: {caller} is not authorized to perform iam:GetAccessKeyLastUsed on resource: access key \
             {access_key}"
        );
        Self::new(QueryCode::AccessDenied, message)
    }

    /// Makes the error for an action of AWS's API that this server does not serve.
    pub fn action_not_implemented(name: &str) -> Self {
        Self::new(QueryCode::NotImplemented, format!("The action {name} is not implemented."))
    }

    /// Makes the error for a parameter that this server does not implement, and that may not be
    /// ignored.
    pub fn parameter_not_implemented(name: &str) -> Self {
        let name: String = name.chars().take(100).collect();
        let message =
            format!("A parameter you provided implies functionality that is not implemented: {name}");
        Self::new(QueryCode::NotImplemented, message)
    }

    /// Makes the error for an action that needs a user's name, is sent without one, and was not
    /// signed with a user's key (recorded).
    pub fn user_name_missing() -> Self {
        let message = "Must specify userName when calling with non-User credentials";
        Self::new(QueryCode::ValidationError, message)
    }

    /// Makes the error for a user's password, since this server has no passwords (recorded).
    pub fn no_login_profile(user_name: &str) -> Self {
        let message = format!("Login Profile for User {user_name} cannot be found.");
        Self::new(QueryCode::NoSuchEntity, message)
    }

    /// Makes the error for the password policy of an account, since this server has none
    /// (recorded).
    pub fn no_password_policy(account: &str) -> Self {
        let message = format!("The Password Policy with domain name {account} cannot be found.");
        Self::new(QueryCode::NoSuchEntity, message)
    }

    /// Makes the error for a marker that no answer has contained (recorded).
    pub fn invalid_marker() -> Self {
        Self::new(QueryCode::ValidationError, "Invalid Marker.")
    }

    /// Returns the code of the error.
    pub fn code(&self) -> QueryCode {
        self.inner.code
    }

    /// Returns the HTTP status of the code.
    pub fn status(&self) -> StatusCode {
        self.inner.code.status()
    }

    /// Returns the sentence.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Writes the XML document of the error. All errors of actions are written here. `service` is
    /// `None` if it is not known yet.
    pub fn render(&self, service: Option<Service>, request_id: &str) -> String {
        let namespace = service.map_or(NO_SERVICE, Service::namespace);
        let fault = if self.status().is_server_error() { "Receiver" } else { "Sender" };
        format!(
            "<ErrorResponse xmlns=\"{namespace}\"><Error><Type>{fault}</Type><Code>{}</Code><Message>{}</Message>\
             </Error><RequestId>{}</RequestId></ErrorResponse>",
            self.code().as_str(),
            escape(&printable(self.message())),
            escape(request_id),
        )
    }
}

impl From<ServiceRefusal> for QueryError {
    fn from(refusal: ServiceRefusal) -> Self {
        match refusal {
            ServiceRefusal::Incomplete(message) => Self::new(QueryCode::IncompleteSignature, message),
            ServiceRefusal::Mismatch(message) => Self::new(QueryCode::SignatureDoesNotMatch, message),
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code().as_str(), self.message())
    }
}

impl std::error::Error for QueryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_namespace_of_its_service() {
        let error = QueryError::new(QueryCode::NoSuchEntity, "The user with name a<b cannot be found.");
        assert_eq!(
            error.render(Some(Service::Iam), "id"),
            "<ErrorResponse xmlns=\"https://iam.amazonaws.com/doc/2010-05-08/\"><Error><Type>Sender</Type>\
             <Code>NoSuchEntity</Code><Message>The user with name a&lt;b cannot be found.</Message></Error>\
             <RequestId>id</RequestId></ErrorResponse>"
        );
        assert!(error.render(Some(Service::Sts), "id").contains("https://sts.amazonaws.com/doc/2011-06-15/"));
        assert!(error.render(None, "id").contains("AWSFault"));
    }

    #[test]
    fn faults_of_the_server_are_the_receivers() {
        for code in QueryCode::ALL {
            let text = QueryError::new(*code, "").render(None, "");
            assert_eq!(text.contains("<Type>Receiver</Type>"), code.status().as_u16() >= 500, "{code:?}");
            assert!(text.contains(&format!("<Code>{}</Code>", code.as_str())), "{text}");
        }
    }
}
