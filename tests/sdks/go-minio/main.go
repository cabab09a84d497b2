// What minio-go presigns and sends. run.py says how it is called, and what it prints.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const life = 5 * time.Minute

var (
	ctx    = context.Background()
	bucket = os.Getenv("SDK_BUCKET")
	client = connect(false)
)

func connect(trailers bool) *minio.Client {
	endpoint, err := url.Parse(os.Getenv("SDK_ENDPOINT"))
	if err != nil {
		panic(err)
	}
	made, err := minio.New(endpoint.Host, &minio.Options{
		Creds:      credentials.NewStaticV4(os.Getenv("SDK_ACCESS_KEY"), os.Getenv("SDK_SECRET_KEY"), ""),
		MaxRetries: 1,
		// For checksums that it computes.
		TrailingHeaders: trailers,
	})
	if err != nil {
		panic(err)
	}
	return made
}

func say(line map[string]any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func presignKey(name, key, method string, parameters url.Values, headers http.Header) {
	made, err := client.PresignHeader(ctx, method, bucket, key, life, parameters, headers)
	if err != nil {
		panic(err)
	}
	say(map[string]any{"case": name, "method": method, "url": made.String()})
}

func presign() {
	with := func(name, method string, parameters url.Values, headers http.Header) {
		presignKey(name, "presigned/"+name, method, parameters, headers)
	}
	put := func(name string, headers http.Header) { with(name, "PUT", nil, headers) }
	put("put", nil)
	presignKey("put-odd-key", os.Getenv("SDK_ODD_KEY"), "PUT", nil, nil)
	put("put-metadata", http.Header{
		"X-Amz-Meta-One": {"1"}, "X-Amz-Meta-Two": {"second"}, "Content-Type": {"text/x"}, "Cache-Control": {"no-cache"},
	})
	put("put-acl", http.Header{"X-Amz-Acl": {"private"}})
	put("put-if-none-match", http.Header{"If-None-Match": {"*"}})
	put("put-content-length", http.Header{"Content-Length": {os.Getenv("SDK_BODY_LENGTH")}})
	put("put-sha256", http.Header{"X-Amz-Checksum-Sha256": {os.Getenv("SDK_BODY_SHA256")}})
	put("put-tagging", http.Header{"X-Amz-Tagging": {"a=b"}})
	with("put-tagging-in-query", "PUT", url.Values{"x-amz-tagging": {"a=b"}}, nil)
	with("put-if-none-match-in-query", "PUT", url.Values{"If-None-Match": {"*"}}, nil)
	put("put-encrypted", http.Header{"X-Amz-Server-Side-Encryption": {"AES256"}})
	with("get", "GET", nil, nil)
	presignKey("get-overrides", "presigned/get", "GET", url.Values{
		"response-content-type":        {"text/other"},
		"response-content-disposition": {`attachment; filename="a b"`},
	}, nil)
	with("get-checksum", "GET", nil, http.Header{"X-Amz-Checksum-Mode": {"ENABLED"}})
	with("get-missing", "GET", nil, nil)
	with("head", "HEAD", nil, nil)
	with("delete", "DELETE", nil, nil)
	presignKey("create", "presigned/upload", "POST", url.Values{"uploads": {""}}, nil)
}

func presignUpload(uploadID string) {
	for _, number := range []string{"1", "2"} {
		parameters := url.Values{"partNumber": {number}, "uploadId": {uploadID}}
		presignKey("part-"+number, "presigned/upload", "PUT", parameters, nil)
	}
	presignKey("complete", "presigned/upload", "POST", url.Values{"uploadId": {uploadID}}, nil)
}

func step(name string, action func() error) {
	line := map[string]any{"step": name}
	if err := action(); err != nil {
		line["wrong"] = err.Error()
	}
	say(line)
}

func refused(code string, err error) error {
	if minio.ToErrorResponse(err).Code == code {
		return nil
	}
	return fmt.Errorf("not refused by %s: %w", code, err)
}

func expect(right bool, got any) error {
	if right {
		return nil
	}
	return fmt.Errorf("got %v", got)
}

func put(key string, options minio.PutObjectOptions) error {
	_, err := client.PutObject(ctx, bucket, key, strings.NewReader("kept"), 4, options)
	return err
}

func get(key string) ([]byte, error) {
	got, err := client.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer got.Close()
	return io.ReadAll(got)
}

func listed(prefix string) ([]string, error) {
	var keys []string
	for item := range client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix}) {
		if item.Err != nil {
			return nil, item.Err
		}
		keys = append(keys, item.Key)
	}
	return keys, nil
}

func deleteMany() error {
	objects := make(chan minio.ObjectInfo, 2)
	for _, key := range []string{"gone-1", "gone-2"} {
		if err := put(key, minio.PutObjectOptions{}); err != nil {
			return err
		}
		objects <- minio.ObjectInfo{Key: key}
	}
	close(objects)
	for problem := range client.RemoveObjects(ctx, bucket, objects, minio.RemoveObjectsOptions{}) {
		return problem.Err
	}
	return nil
}

// From a stream whose length is not known.
func uploader() error {
	body := io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("a"), 5<<20)), bytes.NewReader(bytes.Repeat([]byte("b"), 1000)))
	_, err := client.PutObject(ctx, bucket, "uploaded", body, -1, minio.PutObjectOptions{PartSize: 5 << 20})
	return err
}

func others() error {
	if _, err := client.BucketExists(ctx, bucket); err != nil {
		return err
	}
	if _, err := client.ListBuckets(ctx); err != nil {
		return err
	}
	if _, err := client.GetBucketLocation(ctx, bucket); err != nil {
		return err
	}
	if _, err := client.GetObjectAttributes(ctx, bucket, "kept", minio.ObjectAttributesOptions{}); err != nil {
		return err
	}
	for upload := range client.ListIncompleteUploads(ctx, bucket, "", true) {
		return fmt.Errorf("an upload: %v %w", upload, upload.Err)
	}
	for item := range client.ListObjects(ctx, bucket, minio.ListObjectsOptions{WithVersions: true, Recursive: true}) {
		if item.Err != nil {
			return item.Err
		}
	}
	to := minio.CopyDestOptions{Bucket: bucket, Object: "gone"}
	first := minio.CopySrcOptions{Bucket: bucket, Object: "multi"}
	got, err := client.ComposeObject(ctx, to, first, minio.CopySrcOptions{Bucket: bucket, Object: "kept"})
	if err != nil {
		return err
	}
	if err := client.RemoveObject(ctx, bucket, "gone", minio.RemoveObjectOptions{}); err != nil {
		return err
	}
	return expect(got.Size == 5<<20+1004, got)
}

func use() {
	step("create-bucket", func() error { return client.MakeBucket(ctx, bucket, minio.MakeBucketOptions{}) })
	step("put", func() error {
		metadata := map[string]string{"one": "1"}
		return put("kept", minio.PutObjectOptions{UserMetadata: metadata, ContentType: "text/x"})
	})
	step("put-sha256", func() error {
		options := minio.PutObjectOptions{Checksum: minio.ChecksumSHA256}
		_, err := connect(true).PutObject(ctx, bucket, "checked", strings.NewReader("kept"), 4, options)
		return err
	})
	step("put-condition", func() error {
		options := minio.PutObjectOptions{}
		options.SetMatchETagExcept("*")
		return refused("PreconditionFailed", put("kept", options))
	})
	step("get", func() error {
		got, err := get("kept")
		if err != nil {
			return err
		}
		return expect(string(got) == "kept", string(got))
	})
	step("head", func() error {
		got, err := client.StatObject(ctx, bucket, "kept", minio.StatObjectOptions{})
		if err != nil {
			return err
		}
		return expect(got.Size == 4 && got.UserMetadata["One"] == "1" && got.ContentType == "text/x", got)
	})
	step("list", func() error {
		got, err := listed("k")
		if err != nil {
			return err
		}
		return expect(len(got) == 1 && got[0] == "kept", got)
	})
	step("copy", func() error {
		to := minio.CopyDestOptions{Bucket: bucket, Object: "copied"}
		_, err := client.CopyObject(ctx, to, minio.CopySrcOptions{Bucket: bucket, Object: "kept"})
		return err
	})
	step("multipart", func() error {
		body := append(bytes.Repeat([]byte("a"), 5<<20), bytes.Repeat([]byte("b"), 1000)...)
		options := minio.PutObjectOptions{PartSize: 5 << 20}
		_, err := client.PutObject(ctx, bucket, "multi", bytes.NewReader(body), int64(len(body)), options)
		return err
	})
	step("uploader", uploader)
	step("others", others)
	step("delete", func() error {
		if err := put("gone", minio.PutObjectOptions{}); err != nil {
			return err
		}
		return client.RemoveObject(ctx, bucket, "gone", minio.RemoveObjectOptions{})
	})
	step("delete-many", deleteMany)
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
