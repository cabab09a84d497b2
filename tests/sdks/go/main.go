// What the AWS SDK for Go v2 presigns and sends. run.py says how it is called, and what it prints.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

var (
	ctx    = context.Background()
	bucket = aws.String(os.Getenv("SDK_BUCKET"))
	client = s3.New(s3.Options{
		BaseEndpoint:     aws.String(os.Getenv("SDK_ENDPOINT")),
		Region:           os.Getenv("SDK_REGION"),
		UsePathStyle:     true,
		RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(
			os.Getenv("SDK_ACCESS_KEY"), os.Getenv("SDK_SECRET_KEY"), ""),
	})
)

func say(line map[string]any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func said(name string, made *v4.PresignedHTTPRequest, err error) {
	if err != nil {
		panic(err)
	}
	headers := map[string]string{}
	for header, values := range http.Header(made.SignedHeader) {
		headers[header] = values[0]
	}
	say(map[string]any{"case": name, "method": made.Method, "url": made.URL, "headers": headers})
}

func skip(name string) {
	say(map[string]any{"case": name, "skip": "its presigner has no such operation"})
}

func presign() {
	presigner := s3.NewPresignClient(client, s3.WithPresignExpires(5*time.Minute))
	key := func(name string) *string { return aws.String("presigned/" + name) }
	put := func(name string, input s3.PutObjectInput) {
		input.Bucket = bucket
		if input.Key == nil {
			input.Key = key(name)
		}
		made, err := presigner.PresignPutObject(ctx, &input)
		said(name, made, err)
	}
	get := func(name string, input s3.GetObjectInput) {
		input.Bucket = bucket
		if input.Key == nil {
			input.Key = key(name)
		}
		made, err := presigner.PresignGetObject(ctx, &input)
		said(name, made, err)
	}
	length, err := strconv.ParseInt(os.Getenv("SDK_BODY_LENGTH"), 10, 64)
	if err != nil {
		panic(err)
	}
	put("put", s3.PutObjectInput{})
	put("put-odd-key", s3.PutObjectInput{Key: aws.String(os.Getenv("SDK_ODD_KEY"))})
	put("put-metadata", s3.PutObjectInput{
		Metadata:     map[string]string{"one": "1", "Two": "second"},
		ContentType:  aws.String("text/x"),
		CacheControl: aws.String("no-cache"),
	})
	put("put-acl", s3.PutObjectInput{ACL: types.ObjectCannedACLPrivate})
	put("put-if-none-match", s3.PutObjectInput{IfNoneMatch: aws.String("*")})
	put("put-content-length", s3.PutObjectInput{ContentLength: &length})
	put("put-sha256", s3.PutObjectInput{ChecksumSHA256: aws.String(os.Getenv("SDK_BODY_SHA256"))})
	put("put-tagging", s3.PutObjectInput{Tagging: aws.String("a=b")})
	put("put-encrypted", s3.PutObjectInput{ServerSideEncryption: types.ServerSideEncryptionAes256})
	get("get", s3.GetObjectInput{})
	get("get-overrides", s3.GetObjectInput{
		Key:                        key("get"),
		ResponseContentType:        aws.String("text/other"),
		ResponseContentDisposition: aws.String(`attachment; filename="a b"`),
	})
	get("get-checksum", s3.GetObjectInput{ChecksumMode: types.ChecksumModeEnabled})
	get("get-missing", s3.GetObjectInput{})
	made, err := presigner.PresignHeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key("head")})
	said("head", made, err)
	made, err = presigner.PresignDeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: key("delete")})
	said("delete", made, err)
	skip("create")
}

func presignUpload(uploadID string) {
	presigner := s3.NewPresignClient(client, s3.WithPresignExpires(5*time.Minute))
	for number := int32(1); number <= 2; number++ {
		made, err := presigner.PresignUploadPart(ctx, &s3.UploadPartInput{
			Bucket: bucket, Key: aws.String("presigned/upload"), UploadId: &uploadID, PartNumber: &number,
		})
		said(fmt.Sprintf("part-%d", number), made, err)
	}
	skip("complete")
}

func step(name string, action func() error) {
	line := map[string]any{"step": name}
	if err := action(); err != nil {
		line["wrong"] = err.Error()
	}
	say(line)
}

func refused(code string, err error) error {
	var problem smithy.APIError
	if errors.As(err, &problem) && problem.ErrorCode() == code {
		return nil
	}
	return fmt.Errorf("not refused by %s: %w", code, err)
}

func put(key string, more s3.PutObjectInput) error {
	more.Bucket, more.Key, more.Body = bucket, &key, bytes.NewReader([]byte("kept"))
	_, err := client.PutObject(ctx, &more)
	return err
}

func expect(right bool, got any) error {
	if right {
		return nil
	}
	return fmt.Errorf("got %v", got)
}

func multipart() error {
	key := aws.String("multi")
	upload, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	if err != nil {
		return err
	}
	var parts []types.CompletedPart
	for index, body := range [][]byte{bytes.Repeat([]byte("a"), 5<<20), bytes.Repeat([]byte("b"), 1000)} {
		number := int32(index + 1)
		got, err := client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: bucket, Key: key, UploadId: upload.UploadId, PartNumber: &number, Body: bytes.NewReader(body),
		})
		if err != nil {
			return err
		}
		part := types.CompletedPart{ETag: got.ETag, PartNumber: &number, ChecksumCRC32: got.ChecksumCRC32}
		parts = append(parts, part)
	}
	_, err = client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: bucket, Key: key, UploadId: upload.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	return err
}

func get(key string) ([]byte, error) {
	got, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	return io.ReadAll(got.Body)
}

// By the SDK's own uploader.
func uploader() error {
	body := append(bytes.Repeat([]byte("a"), 5<<20), bytes.Repeat([]byte("b"), 1000)...)
	manager := transfermanager.New(client, func(options *transfermanager.Options) {
		options.PartSizeBytes, options.MultipartUploadThreshold = 5<<20, 5<<20
	})
	_, err := manager.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: bucket, Key: aws.String("uploaded"), Body: bytes.NewReader(body),
	})
	return err
}

func others() error {
	key, source := aws.String("kept"), aws.String(*bucket+"/multi")
	attributes := []types.ObjectAttributes{types.ObjectAttributesEtag, types.ObjectAttributesChecksum}
	for _, action := range []func() error{
		func() error { _, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket}); return err },
		func() error { _, err := client.ListBuckets(ctx, &s3.ListBucketsInput{}); return err },
		func() error {
			_, err := client.GetBucketLocation(ctx, &s3.GetBucketLocationInput{Bucket: bucket})
			return err
		},
		func() error { _, err := client.ListObjects(ctx, &s3.ListObjectsInput{Bucket: bucket}); return err },
		func() error {
			_, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: bucket})
			return err
		},
		func() error {
			_, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key, Range: aws.String("bytes=1-2")})
			return err
		},
		func() error {
			_, err := client.GetObjectAttributes(ctx, &s3.GetObjectAttributesInput{
				Bucket: bucket, Key: key, ObjectAttributes: attributes,
			})
			return err
		},
	} {
		if err := action(); err != nil {
			return err
		}
	}
	key = aws.String("copied-part")
	upload, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	if err != nil {
		return err
	}
	_, err = client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket: bucket, Key: key, UploadId: upload.UploadId, PartNumber: aws.Int32(1), CopySource: source,
		CopySourceRange: aws.String("bytes=0-99"),
	})
	if err != nil {
		return err
	}
	parts, err := client.ListParts(ctx, &s3.ListPartsInput{Bucket: bucket, Key: key, UploadId: upload.UploadId})
	if err != nil {
		return err
	}
	uploads, err := client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: bucket})
	if err != nil {
		return err
	}
	_, err = client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: bucket, Key: key, UploadId: upload.UploadId,
	})
	if err != nil {
		return err
	}
	return expect(len(parts.Parts) == 1 && *parts.Parts[0].Size == 100 && len(uploads.Uploads) == 1, parts)
}

func use() {
	step("create-bucket", func() error {
		_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket})
		return err
	})
	step("put", func() error {
		more := s3.PutObjectInput{Metadata: map[string]string{"one": "1"}, ContentType: aws.String("text/x")}
		return put("kept", more)
	})
	step("put-sha256", func() error {
		return put("checked", s3.PutObjectInput{ChecksumAlgorithm: types.ChecksumAlgorithmSha256})
	})
	step("put-condition", func() error {
		return refused("PreconditionFailed", put("kept", s3.PutObjectInput{IfNoneMatch: aws.String("*")}))
	})
	step("get", func() error {
		got, err := get("kept")
		if err != nil {
			return err
		}
		return expect(string(got) == "kept", string(got))
	})
	step("head", func() error {
		got, err := client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("kept")})
		if err != nil {
			return err
		}
		right := *got.ContentLength == 4 && got.Metadata["one"] == "1" && *got.ContentType == "text/x"
		return expect(right, got)
	})
	step("list", func() error {
		got, err := client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket, Prefix: aws.String("k")})
		if err != nil {
			return err
		}
		return expect(len(got.Contents) == 1 && *got.Contents[0].Key == "kept", got.Contents)
	})
	step("copy", func() error {
		source := aws.String(*bucket + "/kept")
		_, err := client.CopyObject(ctx, &s3.CopyObjectInput{
			Bucket: bucket, Key: aws.String("copied"), CopySource: source,
		})
		return err
	})
	step("multipart", multipart)
	step("uploader", uploader)
	step("others", others)
	step("delete", func() error {
		if err := put("gone", s3.PutObjectInput{}); err != nil {
			return err
		}
		_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("gone")})
		return err
	})
	step("delete-many", func() error {
		var objects []types.ObjectIdentifier
		for _, key := range []string{"gone-1", "gone-2"} {
			if err := put(key, s3.PutObjectInput{}); err != nil {
				return err
			}
			objects = append(objects, types.ObjectIdentifier{Key: aws.String(key)})
		}
		got, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: bucket, Delete: &types.Delete{Objects: objects},
		})
		if err != nil {
			return err
		}
		return expect(len(got.Deleted) == 2, got)
	})
	step("missing", func() error {
		_, err := get("gone")
		return refused("NoSuchKey", err)
	})
}

func main() {
	switch os.Args[1] {
	case "presign":
		presign()
	case "presign-upload":
		presignUpload(os.Args[2])
	case "use":
		use()
	}
}
