"""S3's error codes as the tests expect them, and a record of those that were seen.

The sentences are Amazon's (S3 API reference, and answers seen from Amazon S3), written down apart from the
server's own table, so that a change there does not go unnoticed.
"""

import os
from pathlib import Path

EXPECTED: dict[str, tuple[int, str]] = {
    "AccessControlListNotSupported": (400, "The bucket does not allow ACLs"),
    "AccessDenied": (403, "Access Denied"),
    "AccessForbidden": (403, "CORSResponse: CORS is not enabled for this bucket."),
    "AuthorizationHeaderMalformed": (
        400,
        "The authorization header is malformed; the authorization header requires three components: "
        "Credential, SignedHeaders, and Signature.",
    ),
    "AuthorizationQueryParametersError": (
        400,
        "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, "
        "X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.",
    ),
    "BadDigest": (400, "The Content-MD5 you specified did not match what we received."),
    "BadRequest": (400, "An error occurred when parsing the HTTP request."),
    "BucketAlreadyExists": (
        409,
        "The requested bucket name is not available. The bucket namespace is shared by all users of the system. "
        "Select a different name and try again.",
    ),
    "BucketAlreadyOwnedByYou": (
        409,
        "Your previous request to create the named bucket succeeded and you already own it.",
    ),
    "BucketNotEmpty": (409, "The bucket you tried to delete is not empty"),
    "ConditionalRequestConflict": (
        409,
        "The conditional request cannot succeed due to a conflicting operation against this resource.",
    ),
    "EntityTooLarge": (400, "Your proposed upload exceeds the maximum allowed size"),
    "EntityTooSmall": (400, "Your proposed upload is smaller than the minimum allowed size"),
    "ExpiredToken": (400, "The provided token has expired."),
    "IllegalLocationConstraintException": (
        400,
        "The location constraint is incompatible for the region specific endpoint this request was sent to.",
    ),
    "IllegalVersioningConfigurationException": (400, "The Versioning element must be specified"),
    "IncompleteBody": (
        400,
        "You did not provide the number of bytes specified by the Content-Length HTTP header",
    ),
    "InsufficientStorage": (507, "There is not enough space to complete this request."),
    "InternalError": (500, "We encountered an internal error. Please try again."),
    "InvalidAccessKeyId": (403, "The AWS Access Key Id you provided does not exist in our records."),
    "InvalidArgument": (400, "Invalid Argument"),
    "InvalidBucketName": (400, "The specified bucket is not valid."),
    "InvalidBucketOwnerAWSAccountID": (
        400,
        "The value of the expected bucket owner parameter must be an AWS Account ID...",
    ),
    "InvalidBucketState": (409, "The request is not valid for the current state of the bucket."),
    "InvalidChunkSizeError": (403, "Only the last chunk is allowed to have a size less than 8192 bytes"),
    "InvalidDigest": (400, "The Content-MD5 you specified was invalid."),
    "InvalidLocationConstraint": (400, "The specified location-constraint is not valid"),
    "InvalidPart": (
        400,
        "One or more of the specified parts could not be found.  The part may not have been uploaded, or the "
        "specified entity tag may not match the part's entity tag.",
    ),
    "InvalidPartNumber": (416, "The requested partnumber is not satisfiable"),
    "InvalidPartOrder": (
        400,
        "The list of parts was not in ascending order. Parts must be ordered by part number.",
    ),
    "InvalidRange": (416, "The requested range is not satisfiable"),
    "InvalidRedirectLocation": (
        400,
        "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
    ),
    "InvalidRequest": (400, "Invalid Request"),
    "InvalidStorageClass": (400, "The storage class you specified is not valid"),
    "InvalidTag": (
        400,
        "The tag provided was not a valid tag. This error can occur if the tag did not pass input validation.",
    ),
    "InvalidToken": (400, "The provided token is malformed or otherwise invalid."),
    "InvalidURI": (400, "Couldn't parse the specified URI."),
    "KeyTooLongError": (400, "Your key is too long"),
    "MalformedContinuationToken": (400, "The continuation-token you provided invalid."),
    "MalformedPolicy": (400, "Invalid policy syntax."),
    "MalformedTrailerError": (
        400,
        "The request contained trailing data that was not well-formed or did not conform to our published "
        "schema.",
    ),
    "MalformedXML": (
        400,
        "The XML you provided was not well-formed or did not validate against our published schema",
    ),
    "MaxMessageLengthExceeded": (400, "Your request was too big."),
    "MetadataConfigurationNotFound": (404, "The metadata configuration was not found"),
    "MetadataTooLarge": (400, "Your metadata headers exceed the maximum allowed metadata size"),
    "MethodNotAllowed": (405, "The specified method is not allowed against this resource."),
    "MissingContentLength": (411, "You must provide the Content-Length HTTP header."),
    "MissingRequestBodyError": (400, "Request Body is empty"),
    "NoLoggingStatusForKey": (400, "There is no such thing as the ?logging sub-resource for a key"),
    "NoSuchAnnotation": (404, "The specified annotation does not exist."),
    "NoSuchBucket": (404, "The specified bucket does not exist"),
    "NoSuchBucketPolicy": (404, "The bucket policy does not exist"),
    "NoSuchCORSConfiguration": (404, "The CORS configuration does not exist"),
    "NoSuchConfiguration": (404, "The specified configuration does not exist."),
    "NoSuchKey": (404, "The specified key does not exist."),
    "NoSuchLifecycleConfiguration": (404, "The lifecycle configuration does not exist"),
    "NoSuchObjectLockConfiguration": (404, "The specified object does not have a ObjectLock configuration"),
    "NoSuchPublicAccessBlockConfiguration": (404, "The public access block configuration was not found"),
    "NoSuchTagSet": (404, "The TagSet does not exist"),
    "NoSuchUpload": (
        404,
        "The specified upload does not exist. The upload ID may be invalid, or the upload may have been "
        "aborted or completed.",
    ),
    "NoSuchVersion": (404, "The specified version does not exist."),
    "NoSuchWebsiteConfiguration": (404, "The specified bucket does not have a website configuration"),
    "NotImplemented": (501, "A header you provided implies functionality that is not implemented"),
    "ObjectLockConfigurationNotFoundError": (
        404,
        "Object Lock configuration does not exist for this bucket",
    ),
    "OperationAborted": (
        409,
        "A conflicting conditional operation is currently in progress against this resource. Please try again.",
    ),
    "PreconditionFailed": (412, "At least one of the pre-conditions you specified did not hold"),
    "ReplicationConfigurationNotFoundError": (404, "The replication configuration was not found"),
    "RequestHeaderSectionTooLarge": (400, "Your request header section exceeds the maximum allowed size."),
    "RequestTimeTooSkewed": (
        403,
        "The difference between the request time and the current time is too large.",
    ),
    "RequestTimeout": (
        400,
        "Your socket connection to the server was not read from or written to within the timeout period. "
        "Idle connections will be closed.",
    ),
    "ServerSideEncryptionConfigurationNotFoundError": (
        404,
        "The server side encryption configuration was not found",
    ),
    "ServiceUnavailable": (503, "Service is unable to handle request."),
    "SignatureDoesNotMatch": (
        403,
        "The request signature we calculated does not match the signature you provided. Check your key and "
        "signing method.",
    ),
    "SlowDown": (503, "Please reduce your request rate."),
    "UserAnnotationNameMustBeSpecified": (400, "You must specify a user annotation name."),
    "UserKeyMustBeSpecified": (400, "User key must be specified."),
    "V1APIsNotAllowed": (
        405,
        "The V1 GetBucketMetadataTableConfiguration API operation isn't available for this "
        "account. Use the corresponding V2 GetBucketMetadataConfiguration API operation instead.",
    ),
    "XAmzContentSHA256Mismatch": (
        400,
        "The provided 'x-amz-content-sha256' header does not match what was computed.",
    ),
}

# Codes that the server knows and no test here can bring about for certain, with the reason. To be
# kept short.
NOT_TRIGGERED: dict[str, str] = {}

_RECORD = "SLIPWAY_TESTS_SEEN_CODES"
_seen: set[str] = set()


def record_in(file: Path) -> None:
    """Lets this process, and the workers that it starts, write down each code when it is first seen."""
    os.environ[_RECORD] = str(file)


def saw(code: str | None) -> None:
    if code and code not in _seen:
        _seen.add(code)
        if file := os.environ.get(_RECORD):
            with open(file, "a") as record:
                record.write(f"{code}\n")


def record_of(client) -> None:
    """Lets a boto3 client write down the codes that S3 answers it."""
    client.meta.events.register("after-call.s3", lambda parsed, **_: saw(parsed.get("Error", {}).get("Code")))


def seen_in(file: Path) -> set[str]:
    return set(file.read_text().split()) if file.exists() else set()
