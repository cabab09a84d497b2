import java.net.URI;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.presigner.PresignedRequest;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3Configuration;
import software.amazon.awssdk.services.s3.model.ChecksumAlgorithm;
import software.amazon.awssdk.services.s3.model.ChecksumMode;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.ObjectAttributes;
import software.amazon.awssdk.services.s3.model.ObjectCannedACL;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.services.s3.model.S3Exception;
import software.amazon.awssdk.services.s3.model.ServerSideEncryption;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;

/** What the AWS SDK for Java v2 presigns and sends. run.py says how it is called, and what it prints. */
public class Program {
    private static final String BUCKET = System.getenv("SDK_BUCKET");
    private static final URI ENDPOINT = URI.create(System.getenv("SDK_ENDPOINT"));
    private static final Region REGION = Region.of(System.getenv("SDK_REGION"));
    private static final Duration LIFE = Duration.ofMinutes(5);
    private static final StaticCredentialsProvider CREDENTIALS = StaticCredentialsProvider.create(
            AwsBasicCredentials.create(System.getenv("SDK_ACCESS_KEY"), System.getenv("SDK_SECRET_KEY")));

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    private static void say(Map<String, String> line) {
        System.out.println(line.entrySet().stream()
                .map(entry -> quoted(entry.getKey()) + ": " + entry.getValue())
                .collect(Collectors.joining(", ", "{", "}")));
    }

    private static void said(String name, PresignedRequest made) {
        Map<String, String> line = new LinkedHashMap<>();
        line.put("case", quoted(name));
        line.put("method", quoted(made.httpRequest().method().name()));
        line.put("url", quoted(made.url().toString()));
        line.put("headers", made.signedHeaders().entrySet().stream()
                .map(entry -> quoted(entry.getKey()) + ": " + quoted(entry.getValue().get(0)))
                .collect(Collectors.joining(", ", "{", "}")));
        say(line);
    }

    private static S3Presigner presigner() {
        return S3Presigner.builder().endpointOverride(ENDPOINT).region(REGION).credentialsProvider(CREDENTIALS)
                .serviceConfiguration(S3Configuration.builder().pathStyleAccessEnabled(true).build()).build();
    }

    private static void presign() {
        S3Presigner presigner = presigner();
        put(presigner, "put", put());
        put(presigner, "put-odd-key", put().key(System.getenv("SDK_ODD_KEY")));
        put(presigner, "put-metadata",
                put().metadata(Map.of("one", "1", "Two", "second")).contentType("text/x").cacheControl("no-cache"));
        put(presigner, "put-acl", put().acl(ObjectCannedACL.PRIVATE));
        put(presigner, "put-if-none-match", put().ifNoneMatch("*"));
        put(presigner, "put-content-length", put().contentLength(Long.parseLong(System.getenv("SDK_BODY_LENGTH"))));
        put(presigner, "put-sha256", put().checksumSHA256(System.getenv("SDK_BODY_SHA256")));
        put(presigner, "put-tagging", put().tagging("a=b"));
        put(presigner, "put-encrypted", put().serverSideEncryption(ServerSideEncryption.AES256));
        put(presigner, "put-sha256-in-query", put().overrideConfiguration(
                more -> more.putRawQueryParameter("x-amz-checksum-sha256", System.getenv("SDK_BODY_SHA256"))));
        put(presigner, "put-tagging-in-query",
                put().overrideConfiguration(more -> more.putRawQueryParameter("x-amz-tagging", "a=b")));
        get(presigner, "get", get());
        get(presigner, "get-overrides", get().key("presigned/get").responseContentType("text/other")
                .responseContentDisposition("attachment; filename=\"a b\""));
        get(presigner, "get-checksum", get().checksumMode(ChecksumMode.ENABLED));
        get(presigner, "get-missing", get());
        said("head", presigner.presignHeadObject(request -> request.signatureDuration(LIFE)
                .headObjectRequest(head -> head.bucket(BUCKET).key("presigned/head"))));
        said("delete", presigner.presignDeleteObject(request -> request.signatureDuration(LIFE)
                .deleteObjectRequest(delete -> delete.bucket(BUCKET).key("presigned/delete"))));
        said("create", presigner.presignCreateMultipartUpload(request -> request.signatureDuration(LIFE)
                .createMultipartUploadRequest(create -> create.bucket(BUCKET).key("presigned/upload"))));
    }

    private static PutObjectRequest.Builder put() {
        return PutObjectRequest.builder().bucket(BUCKET);
    }

    private static GetObjectRequest.Builder get() {
        return GetObjectRequest.builder().bucket(BUCKET);
    }

    private static void put(S3Presigner presigner, String name, PutObjectRequest.Builder request) {
        String key = Optional.ofNullable(request.build().key()).orElse("presigned/" + name);
        said(name, presigner.presignPutObject(
                more -> more.signatureDuration(LIFE).putObjectRequest(request.key(key).build())));
    }

    private static void get(S3Presigner presigner, String name, GetObjectRequest.Builder request) {
        String key = Optional.ofNullable(request.build().key()).orElse("presigned/" + name);
        said(name, presigner.presignGetObject(
                more -> more.signatureDuration(LIFE).getObjectRequest(request.key(key).build())));
    }

    private static void presignUpload(String uploadId) {
        S3Presigner presigner = presigner();
        for (int number = 1; number <= 2; number++) {
            int partNumber = number;
            said("part-" + number, presigner.presignUploadPart(request -> request.signatureDuration(LIFE)
                    .uploadPartRequest(part -> part.bucket(BUCKET).key("presigned/upload").uploadId(uploadId)
                            .partNumber(partNumber))));
        }
        said("complete", presigner.presignCompleteMultipartUpload(request -> request.signatureDuration(LIFE)
                .completeMultipartUploadRequest(
                        complete -> complete.bucket(BUCKET).key("presigned/upload").uploadId(uploadId))));
    }

    private interface Action {
        /** What is wrong, or null. */
        String act() throws Exception;
    }

    private static void step(String name, Action action) {
        Map<String, String> line = new LinkedHashMap<>();
        line.put("step", quoted(name));
        String wrong;
        try {
            wrong = action.act();
        } catch (Exception error) {
            wrong = error.toString();
        }
        if (wrong != null) {
            line.put("wrong", quoted(wrong));
        }
        say(line);
    }

    private static Action done(Runnable action) {
        return () -> {
            action.run();
            return null;
        };
    }

    private static Action refused(String code, Runnable action) {
        return () -> {
            try {
                action.run();
            } catch (S3Exception error) {
                return code.equals(error.awsErrorDetails().errorCode()) ? null : error.toString();
            }
            return "no error";
        };
    }

    private static String expect(boolean right, Object got) {
        return right ? null : "got " + got;
    }

    private static void use() {
        S3Client client = S3Client.builder().endpointOverride(ENDPOINT).region(REGION).forcePathStyle(true)
                .credentialsProvider(CREDENTIALS).build();
        RequestBody kept = RequestBody.fromString("kept");
        step("create-bucket", done(() -> client.createBucket(request -> request.bucket(BUCKET))));
        step("put", done(() -> client.putObject(
                put().key("kept").metadata(Map.of("one", "1")).contentType("text/x").build(), kept)));
        step("put-sha256", done(() -> client.putObject(
                put().key("checked").checksumAlgorithm(ChecksumAlgorithm.SHA256).build(), kept)));
        step("put-condition", refused("PreconditionFailed",
                () -> client.putObject(put().key("kept").ifNoneMatch("*").build(), kept)));
        step("get", () -> {
            String got = client.getObjectAsBytes(get().key("kept").build()).asUtf8String();
            return expect(got.equals("kept"), got);
        });
        step("head", () -> {
            var got = client.headObject(request -> request.bucket(BUCKET).key("kept"));
            return expect(got.contentLength() == 4 && "1".equals(got.metadata().get("one"))
                    && "text/x".equals(got.contentType()), got);
        });
        step("list", () -> {
            var got = client.listObjectsV2(request -> request.bucket(BUCKET).prefix("k")).contents();
            return expect(got.size() == 1 && got.get(0).key().equals("kept"), got);
        });
        step("copy", done(() -> client.copyObject(request -> request.sourceBucket(BUCKET).sourceKey("kept")
                .destinationBucket(BUCKET).destinationKey("copied"))));
        step("multipart", done(() -> multipart(client)));
        step("uploader", done(Program::uploader));
        step("others", () -> others(client));
        step("delete", done(() -> {
            client.putObject(put().key("gone").build(), kept);
            client.deleteObject(request -> request.bucket(BUCKET).key("gone"));
        }));
        step("delete-many", () -> {
            List<ObjectIdentifier> objects = List.of("gone-1", "gone-2").stream().map(key -> {
                client.putObject(put().key(key).build(), kept);
                return ObjectIdentifier.builder().key(key).build();
            }).toList();
            var got = client.deleteObjects(
                    request -> request.bucket(BUCKET).delete(delete -> delete.objects(objects)));
            return expect(got.deleted().size() == 2, got);
        });
        step("missing", refused("NoSuchKey", () -> client.getObjectAsBytes(get().key("gone").build())));
    }

    /** By the client that makes parts of large bodies itself. */
    private static void uploader() {
        try (S3AsyncClient client = S3AsyncClient.builder().endpointOverride(ENDPOINT).region(REGION)
                .forcePathStyle(true).credentialsProvider(CREDENTIALS).multipartEnabled(true)
                .multipartConfiguration(parts -> parts.thresholdInBytes(5L << 20).minimumPartSizeInBytes(5L << 20))
                .build()) {
            String body = "a".repeat(5 << 20) + "b".repeat(1000);
            client.putObject(put().key("uploaded").build(), AsyncRequestBody.fromString(body)).join();
        }
    }

    private static String others(S3Client client) {
        client.headBucket(request -> request.bucket(BUCKET));
        client.listBuckets();
        client.getBucketLocation(request -> request.bucket(BUCKET));
        client.listObjects(request -> request.bucket(BUCKET));
        client.listObjectVersions(request -> request.bucket(BUCKET));
        client.getObjectAsBytes(get().key("kept").range("bytes=1-2").build());
        client.getObjectAttributes(request -> request.bucket(BUCKET).key("kept")
                .objectAttributes(ObjectAttributes.E_TAG, ObjectAttributes.CHECKSUM));
        String key = "copied-part";
        String uploadId = client.createMultipartUpload(request -> request.bucket(BUCKET).key(key)).uploadId();
        client.uploadPartCopy(request -> request.sourceBucket(BUCKET).sourceKey("multi").destinationBucket(BUCKET)
                .destinationKey(key).uploadId(uploadId).partNumber(1).copySourceRange("bytes=0-99"));
        var parts = client.listParts(request -> request.bucket(BUCKET).key(key).uploadId(uploadId)).parts();
        var uploads = client.listMultipartUploads(request -> request.bucket(BUCKET)).uploads();
        client.abortMultipartUpload(request -> request.bucket(BUCKET).key(key).uploadId(uploadId));
        return expect(parts.size() == 1 && parts.get(0).size() == 100 && uploads.size() == 1, parts);
    }

    private static void multipart(S3Client client) {
        String uploadId = client.createMultipartUpload(request -> request.bucket(BUCKET).key("multi")).uploadId();
        List<CompletedPart> parts = new java.util.ArrayList<>();
        for (String body : List.of("a".repeat(5 << 20), "b".repeat(1000))) {
            int number = parts.size() + 1;
            var got = client.uploadPart(
                    request -> request.bucket(BUCKET).key("multi").uploadId(uploadId).partNumber(number),
                    RequestBody.fromString(body));
            parts.add(CompletedPart.builder().partNumber(number).eTag(got.eTag())
                    .checksumCRC32(got.checksumCRC32()).build());
        }
        client.completeMultipartUpload(request -> request.bucket(BUCKET).key("multi").uploadId(uploadId)
                .multipartUpload(upload -> upload.parts(parts)));
    }

    public static void main(String[] arguments) {
        switch (arguments[0]) {
            case "presign" -> presign();
            case "presign-upload" -> presignUpload(arguments[1]);
            case "use" -> use();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }
}
