//! A request that is passed to its operation.

use std::sync::Arc;

use backend::{BackendError, Context, Initiator, ObjectRef, Versioning};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use iam::{Account, BucketRules, PrincipalKind, ROOT_NAME, Resource, Values};
use s3_types::limits::PART_BYTES_MAX;
use s3_types::{ActionSet, BucketName, S3Action};
use s3_wire::auth::PayloadMode;
use s3_wire::headers::ChecksumRequest;
use s3_wire::honoured::Signed;
use s3_wire::operation::Operation;
use s3_wire::target::Shape;
use s3_wire::xml::Owner;
use s3_wire::{ErrorCode, Query, Result, S3Error, Target};

use crate::access::{Asker, Authorized, Refused, Subject};
use crate::body::{DecodedBody, Parse, RequestBody, read_document};
use crate::errors::{ErrorSite, from_backend, marker_is_named};
use crate::gateway::{Gateway, Settings};
use crate::request::RequestContext;

/// Everything that an operation may need of a request and the gateway.
pub struct Call<'a> {
    /// The state that all requests share.
    pub gateway: &'a Gateway,
    /// Identities and domains as they were when the request began.
    pub settings: &'a Settings,
    /// Id, time and peer.
    pub cx: &'a RequestContext,
    /// The context of the storage calls of this request.
    pub backend_cx: &'a Context,
    /// Method and URI.
    pub head: &'a Parts,
    /// The headers, and the parameters of a presigned URL that replace headers.
    pub headers: &'a HeaderMap,
    /// The decoded query.
    pub query: &'a Query<'a>,
    /// Bucket and key.
    pub target: &'a Target,
    /// The rules of the bucket; `None` for requests without a bucket, and for CreateBucket.
    pub rules: Option<&'a Arc<BucketRules>>,
    /// Whether the bucket kept versions when the request began.
    pub versioning: Versioning,
    /// True if versions of the bucket could be locked when the request began.
    pub has_locks: bool,
    /// The operation that the request asks for.
    pub operation: Operation,
    /// The requester, with the facts about the request that conditions may need.
    pub asker: &'a Asker<'a>,
    /// The place of the requester's signature.
    pub signed: Signed,
    /// The body.
    pub body: &'a mut RequestBody,
    /// The method by which the body will be verified; `None` once it is decoded.
    pub payload: Option<PayloadMode>,
}

impl<'a> Call<'a> {
    /// Returns the bucket. The error never occurs, since requests without a bucket are not routed
    /// to operations that call this.
    pub fn bucket(&self) -> Result<&'a BucketName> {
        self.target.bucket().ok_or_else(|| ErrorCode::InvalidBucketName.into())
    }

    /// Returns the object. The error never occurs, since requests without an object are not routed
    /// to operations that call this.
    pub fn object(&self) -> Result<ObjectRef<'a>> {
        match self.target {
            Target::Object(bucket, key) => Ok(ObjectRef::current(bucket, key)),
            _ => Err(ErrorCode::InvalidURI.into()),
        }
    }

    /// Fails with `NoSuchBucket` if the request's bucket does not exist. It is for operations that
    /// do not ask the storage for anything in the bucket: that the bucket's state is in memory does
    /// not prove that it exists.
    pub async fn require_bucket(&self) -> Result<()> {
        match self.gateway.storage.bucket_exists(self.backend_cx, self.bucket()?).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.fail(BackendError::NoSuchBucket)),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Returns the account that owns the bucket and its objects. For a request without a bucket it
    /// is the requester's account, and for an anonymous one the account that owns the storage.
    pub fn account(&self) -> &'a Arc<Account> {
        let of_requester = || self.asker.requester.session().map(|session| &session.principal.account);
        let owner = self.rules.map(|rules| &rules.owner).or_else(of_requester);
        owner.unwrap_or(&self.settings.account)
    }

    /// Returns [`Call::account`] in the form of answers.
    pub fn owner(&self) -> Owner<'a> {
        Owner::new(self.account().canonical_id())
    }

    /// Returns the requester as the initiator of an upload; `None` for an anonymous requester, and
    /// for the root of the account that owns the storage.
    pub fn new_initiator(&self) -> Option<Box<Initiator>> {
        let principal = &self.asker.requester.session()?.principal;
        let id = match principal.kind {
            PrincipalKind::Root if principal.account == self.settings.account => return None,
            PrincipalKind::Root => principal.account.canonical_id(),
            _ => &principal.arn,
        };
        Some(Box::new(Initiator { id: id.into(), name: principal.name.clone() }))
    }

    /// Returns the initiator of an upload in the form of answers: with a name, which S3 leaves out
    /// for owners. `kept` is the initiator that the storage has kept.
    pub fn initiator<'i>(&self, kept: Option<&'i Initiator>) -> Owner<'i>
    where
        'a: 'i,
    {
        let of_storage = (self.settings.account.canonical_id(), ROOT_NAME);
        let (id, name) = kept.map_or(of_storage, |initiator| (&*initiator.id, &*initiator.name));
        Owner { display_name: Some(name), ..Owner::new(id) }
    }

    /// Returns the operation's own action.
    pub fn action(&self) -> S3Action {
        self.operation.info().action
    }

    /// Returns the permission of the requester to do these actions with a resource, or fails with
    /// `AccessDenied`. `values` has the values of the condition keys that depend on the operation.
    pub fn authorize<'r>(
        &self,
        subject: Subject<'r>,
        actions: ActionSet,
        values: &Values<'_>,
    ) -> Result<Authorized<'r>>
    where
        'a: 'r,
    {
        let authorized =
            self.gateway.storage.authorize(self.backend_cx, self.asker, subject, actions, values);
        authorized.map_err(|refused| match refused {
            Refused::Denied(action) => match self.asker.reason(action, subject, values) {
                Some(reason) => S3Error::with_message(ErrorCode::AccessDenied, reason),
                None => ErrorCode::AccessDenied.into(),
            },
            Refused::Ended => ErrorCode::ExpiredToken.into(),
        })
    }

    /// Returns the refusal of the operation for a reason that is not a policy's, in the form of
    /// S3's sentences.
    #[cold]
    pub fn refused_because(&self, why: &str) -> S3Error {
        let Some(session) = self.asker.requester.session() else { return ErrorCode::AccessDenied.into() };
        let (user, action) = (&session.principal.arn, self.action().as_str());
        let on =
            self.subject().resource.arn().map(|arn| format!(" on resource: \"{arn}\"")).unwrap_or_default();
        let message = format!("User: {user} is not authorized to perform: {action}{on} because {why}.");
        S3Error::with_message(ErrorCode::AccessDenied, message)
    }

    /// Returns the bucket or object that the operation acts on. A request may name a key although
    /// its operation concerns the bucket.
    pub fn subject(&self) -> Subject<'a> {
        let named = Subject { resource: resource(self.target), rules: self.rules };
        match self.operation.info().shape {
            Shape::Service => Subject::default(),
            Shape::Bucket => named.bucket(),
            Shape::Object => named,
        }
    }

    /// Returns a function that turns an error of the storage, about this request's bucket, object
    /// or upload, into S3's.
    pub fn failed(&self) -> impl Fn(BackendError) -> S3Error + Copy + Send + Sync + use<'a> {
        let (method, target, upload) = (&self.head.method, self.target, self.query.get("uploadId"));
        move |error| match error {
            BackendError::DeleteMarker { marker, is_named: true } => marker_is_named(method, &marker),
            error => about(error, target, upload),
        }
    }

    /// Turns one error of the storage into S3's, as [`Call::failed`] does.
    pub fn fail(&self, error: BackendError) -> S3Error {
        self.failed()(error)
    }

    /// Returns the function of [`Call::failed`] in a form that may outlive the call.
    pub fn failed_later(&self) -> impl Fn(BackendError) -> S3Error + Send + Sync + use<> {
        let (target, upload) = (self.target.clone(), self.query.get("uploadId").map(str::to_owned));
        move |error| about(error, &target, upload.as_deref())
    }

    /// Returns the facts about the request that are needed to log and answer an error.
    pub fn site(&self) -> ErrorSite {
        ErrorSite::new(self.gateway, self.cx, self.head, Some(self.target))
    }

    /// Decodes the body as the bytes of an object or a part. Fails if the request does not state
    /// their number, or if it is more than S3 takes in one request. It can be called once.
    pub fn decode_body(&mut self) -> Result<DecodedBody<'_>> {
        // In HTTP a request with neither header has no body. S3 refuses it.
        if ![CONTENT_LENGTH, TRANSFER_ENCODING].iter().any(|name| self.headers.contains_key(name)) {
            return Err(ErrorCode::MissingContentLength.into());
        }
        let body = self.decode()?;
        let length = body.length();
        if length <= PART_BYTES_MAX {
            return Ok(body);
        }
        Err(S3Error::new(ErrorCode::EntityTooLarge)
            .detail("ProposedSize", length.to_string())
            .detail("MaxSizeAllowed", PART_BYTES_MAX.to_string()))
    }

    /// Reads the body as a document of at most `bytes_max` with the digests `expected`, and parses
    /// it. It can be called once.
    pub async fn read_document<T: Send + 'static>(
        &mut self,
        expected: ChecksumRequest,
        bytes_max: usize,
        parse: Parse<T>,
    ) -> Result<T> {
        let large = &self.gateway.large_documents;
        read_document(self.decode()?, expected, bytes_max, large, parse).await
    }

    fn decode(&mut self) -> Result<DecodedBody<'_>> {
        // The second time, the signature of its chunks would not be checked.
        let again = || S3Error::new(ErrorCode::InternalError).caused_by("the request's body was read twice");
        let mode = self.payload.take().ok_or_else(again)?;
        self.body.decode(mode, self.headers)
    }

    /// Reads and drops a body that S3 ignores. If its signature or digest is wrong, this is still
    /// an error.
    pub async fn ignore_body(&mut self) -> Result<()> {
        let expected = ChecksumRequest::parse(self.headers)?;
        self.read_document(expected, s3_wire::limits::XML_BODY_BYTES_MAX, |_| Ok(())).await
    }
}

/// Returns the bucket and key of a target.
pub fn resource(target: &Target) -> Resource<'_> {
    Resource { bucket: target.bucket(), key: target.key() }
}

fn about(error: BackendError, target: &Target, upload: Option<&str>) -> S3Error {
    let about_upload = matches!(
        error,
        BackendError::NoSuchUpload | BackendError::InvalidPart { .. } | BackendError::InvalidPartOrder
    );
    let error = from_backend(error, resource(target));
    match upload {
        Some(id) if about_upload => error.detail("UploadId", id),
        _ => error,
    }
}
