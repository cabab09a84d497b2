// What the AWS SDK for JavaScript presigns and sends. `run.py` says how it is called, and what it prints.

import { Readable } from "node:stream";
import * as s3 from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const env = process.env;
const Bucket = env.SDK_BUCKET;
const client = new s3.S3Client({
  endpoint: env.SDK_ENDPOINT,
  region: env.SDK_REGION,
  forcePathStyle: true,
  maxAttempts: 1,
  credentials: { accessKeyId: env.SDK_ACCESS_KEY, secretAccessKey: env.SDK_SECRET_KEY },
});

function say(line) {
  console.log(JSON.stringify(line));
}

async function presigned(name, method, command, options = {}) {
  say({ case: name, method, url: await getSignedUrl(client, command, { expiresIn: 300, ...options }) });
}

async function presign() {
  const of = (name, more = {}) => ({ Bucket, Key: `presigned/${name}`, ...more });
  const put = (name, more, options) =>
    presigned(name, "PUT", new s3.PutObjectCommand(of(name, more)), options);
  const get = (name, more) => presigned(name, "GET", new s3.GetObjectCommand(of(name, more)));
  await put("put");
  await put("put-odd-key", { Key: env.SDK_ODD_KEY });
  await put("put-metadata", {
    Metadata: { one: "1", Two: "second" },
    ContentType: "text/x",
    CacheControl: "no-cache",
  });
  await put("put-acl", { ACL: "private" });
  await put("put-if-none-match", { IfNoneMatch: "*" });
  await put("put-content-length", { ContentLength: Number(env.SDK_BODY_LENGTH) });
  await put("put-sha256-in-query", { ChecksumSHA256: env.SDK_BODY_SHA256 });
  await put(
    "put-sha256",
    { ChecksumSHA256: env.SDK_BODY_SHA256 },
    { unhoistableHeaders: new Set(["x-amz-checksum-sha256"]) },
  );
  await put("put-tagging", { Tagging: "a=b" });
  await put("put-encrypted", { ServerSideEncryption: "AES256" });
  await get("get");
  await get("get-overrides", {
    Key: "presigned/get",
    ResponseContentType: "text/other",
    ResponseContentDisposition: 'attachment; filename="a b"',
  });
  await get("get-checksum", { ChecksumMode: "ENABLED" });
  await get("get-missing");
  await presigned("head", "HEAD", new s3.HeadObjectCommand(of("head")));
  await presigned("delete", "DELETE", new s3.DeleteObjectCommand(of("delete")));
  await presigned("create", "POST", new s3.CreateMultipartUploadCommand(of("upload")));
}

async function presignUpload(UploadId) {
  const common = { Bucket, Key: "presigned/upload", UploadId };
  for (const PartNumber of [1, 2])
    await presigned(`part-${PartNumber}`, "PUT", new s3.UploadPartCommand({ ...common, PartNumber }));
  await presigned("complete", "POST", new s3.CompleteMultipartUploadCommand(common));
}

async function step(name, action) {
  let wrong;
  try {
    wrong = await action();
  } catch (error) {
    wrong = `${error.name}: ${error.message}`;
  }
  say(typeof wrong === "string" ? { step: name, wrong } : { step: name });
}

async function refused(name, command) {
  try {
    await client.send(command);
  } catch (error) {
    return error.name === name ? undefined : `got ${error.name}`;
  }
  return "no error";
}

function expect(right, got) {
  return right ? undefined : `got ${JSON.stringify(got)}`;
}

// By the SDK's own uploader, from a stream.
async function uploader() {
  const Body = Readable.from([Buffer.alloc(5 << 20, "a"), Buffer.alloc(1000, "b")]);
  await new Upload({ client, params: { Bucket, Key: "uploaded", Body } }).done();
}

async function others() {
  const of = { Bucket, Key: "kept" };
  await client.send(new s3.HeadBucketCommand({ Bucket }));
  await client.send(new s3.ListBucketsCommand());
  await client.send(new s3.GetBucketLocationCommand({ Bucket }));
  await client.send(new s3.ListObjectsCommand({ Bucket }));
  await client.send(new s3.ListObjectVersionsCommand({ Bucket }));
  await client.send(new s3.GetObjectCommand({ ...of, Range: "bytes=1-2" }));
  await client.send(new s3.GetObjectAttributesCommand({ ...of, ObjectAttributes: ["ETag", "ObjectSize", "Checksum"] }));
  const upload = { Bucket, Key: "copied-part" };
  upload.UploadId = (await client.send(new s3.CreateMultipartUploadCommand(upload))).UploadId;
  const part = { ...upload, PartNumber: 1, CopySource: `${Bucket}/multi`, CopySourceRange: "bytes=0-99" };
  await client.send(new s3.UploadPartCopyCommand(part));
  const parts = await client.send(new s3.ListPartsCommand(upload));
  const uploads = await client.send(new s3.ListMultipartUploadsCommand({ Bucket }));
  await client.send(new s3.AbortMultipartUploadCommand(upload));
  return expect(parts.Parts[0].Size === 100 && uploads.Uploads.length === 1, [parts, uploads]);
}

async function use() {
  const put = (Key, more = {}) => new s3.PutObjectCommand({ Bucket, Key, Body: "kept", ...more });
  await step("create-bucket", () => client.send(new s3.CreateBucketCommand({ Bucket })));
  await step("put", () => client.send(put("kept", { Metadata: { one: "1" }, ContentType: "text/x" })));
  await step("put-sha256", () => client.send(put("checked", { ChecksumAlgorithm: "SHA256" })));
  await step("put-condition", () => refused("PreconditionFailed", put("kept", { IfNoneMatch: "*" })));
  await step("get", async () => {
    const got = await client.send(new s3.GetObjectCommand({ Bucket, Key: "kept" }));
    const text = await got.Body.transformToString();
    return expect(text === "kept", text);
  });
  await step("head", async () => {
    const got = await client.send(new s3.HeadObjectCommand({ Bucket, Key: "kept" }));
    return expect(got.ContentLength === 4 && got.Metadata.one === "1" && got.ContentType === "text/x", got);
  });
  await step("list", async () => {
    const got = await client.send(new s3.ListObjectsV2Command({ Bucket, Prefix: "k" }));
    return expect(got.Contents.length === 1 && got.Contents[0].Key === "kept", got);
  });
  await step("copy", () =>
    client.send(new s3.CopyObjectCommand({ Bucket, Key: "copied", CopySource: `${Bucket}/kept` })),
  );
  await step("multipart", async () => {
    const upload = { Bucket, Key: "multi" };
    upload.UploadId = (await client.send(new s3.CreateMultipartUploadCommand(upload))).UploadId;
    const Parts = [];
    for (const Body of [Buffer.alloc(5 << 20, "a"), Buffer.alloc(1000, "b")]) {
      const PartNumber = Parts.length + 1;
      const got = await client.send(new s3.UploadPartCommand({ ...upload, PartNumber, Body }));
      Parts.push({ PartNumber, ETag: got.ETag, ChecksumCRC32: got.ChecksumCRC32 });
    }
    await client.send(new s3.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }));
  });
  await step("uploader", uploader);
  await step("others", others);
  await step("delete", async () => {
    await client.send(put("gone"));
    await client.send(new s3.DeleteObjectCommand({ Bucket, Key: "gone" }));
  });
  await step("delete-many", async () => {
    const Objects = [{ Key: "gone-1" }, { Key: "gone-2" }];
    for (const { Key } of Objects) await client.send(put(Key));
    const got = await client.send(new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    return expect(got.Deleted?.length === 2, got);
  });
  await step("missing", () => refused("NoSuchKey", new s3.GetObjectCommand({ Bucket, Key: "gone" })));
}

await { presign, "presign-upload": presignUpload, use }[process.argv[2]](...process.argv.slice(3));
