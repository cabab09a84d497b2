// What the AWS SDK for JavaScript v2 presigns: it has ended, and its URLs are still made.
// `run.py` says how this is called.

process.env.AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE = "1";
const AWS = require("aws-sdk");

const env = process.env;
const Bucket = env.SDK_BUCKET;
const client = new AWS.S3({
  endpoint: env.SDK_ENDPOINT,
  region: env.SDK_REGION,
  s3ForcePathStyle: true,
  signatureVersion: env.SDK_SIGNATURE || "v4",
  accessKeyId: env.SDK_ACCESS_KEY,
  secretAccessKey: env.SDK_SECRET_KEY,
});

function say(line) {
  console.log(JSON.stringify(line));
}

function presigned(name, method, operation, more = {}) {
  const parameters = { Bucket, Key: `presigned/${name}`, Expires: 300, ...more };
  say({ case: name, method, url: client.getSignedUrl(operation, parameters) });
}

function presign() {
  const put = (name, more) => presigned(name, "PUT", "putObject", more);
  const get = (name, more) => presigned(name, "GET", "getObject", more);
  put("put");
  put("put-odd-key", { Key: env.SDK_ODD_KEY });
  put("put-metadata", {
    Metadata: { one: "1", Two: "second" },
    ContentType: "text/x",
    CacheControl: "no-cache",
  });
  put("put-acl", { ACL: "private" });
  put("put-if-none-match", { IfNoneMatch: "*" });
  say({ case: "put-content-length", skip: "it refuses ContentLength when it presigns" });
  put("put-sha256", { ChecksumSHA256: env.SDK_BODY_SHA256 });
  put("put-tagging", { Tagging: "a=b" });
  put("put-encrypted", { ServerSideEncryption: "AES256" });
  get("get");
  get("get-overrides", {
    Key: "presigned/get",
    ResponseContentType: "text/other",
    ResponseContentDisposition: 'attachment; filename="a b"',
  });
  get("get-checksum", { ChecksumMode: "ENABLED" });
  get("get-missing");
  presigned("head", "HEAD", "headObject");
  presigned("delete", "DELETE", "deleteObject");
  presigned("create", "POST", "createMultipartUpload", { Key: "presigned/upload" });
}

function presignUpload(UploadId) {
  const common = { Key: "presigned/upload", UploadId };
  for (const PartNumber of [1, 2])
    presigned(`part-${PartNumber}`, "PUT", "uploadPart", { ...common, PartNumber });
  presigned("complete", "POST", "completeMultipartUpload", common);
}

({ presign, "presign-upload": presignUpload })[process.argv[2]](...process.argv.slice(3));
