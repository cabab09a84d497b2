//! What the AWS SDK for Rust presigns and sends. `run.py` says how it is called, and what it prints.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata};
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::presigning::{PresignedRequest, PresigningConfig};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{
    ChecksumAlgorithm, ChecksumMode, CompletedMultipartUpload, CompletedPart, Delete, ObjectAttributes,
    ObjectCannedAcl, ObjectIdentifier, ServerSideEncryption,
};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn Error>>;

struct Program {
    client: Client,
    bucket: String,
    life: PresigningConfig,
}

fn told(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn said(case: &str, made: &PresignedRequest) {
    let headers: BTreeMap<&str, &str> = made.headers().collect();
    say(&json!({"case": case, "method": made.method(), "url": made.uri(), "headers": headers}));
}

fn say(line: &Value) {
    println!("{line}");
}

fn key_of(case: &str) -> String {
    format!("presigned/{case}")
}

fn expect(right: bool, got: impl std::fmt::Debug) -> Outcome {
    if right { Ok(()) } else { Err(format!("got {got:?}").into()) }
}

fn refused<T, E: ProvideErrorMetadata>(code: &str, outcome: Result<T, E>) -> Outcome {
    match outcome {
        Ok(_) => Err("no error".into()),
        Err(error) => expect(error.code() == Some(code), error.code()),
    }
}

fn step(name: &str, outcome: Outcome) {
    match outcome {
        Ok(()) => say(&json!({"step": name})),
        Err(error) => say(&json!({"step": name, "wrong": DisplayErrorContext(&*error).to_string()})),
    }
}

impl Program {
    fn put(&self, case: &str) -> PutObjectFluentBuilder {
        self.client.put_object().bucket(&self.bucket).key(key_of(case))
    }

    async fn presign_puts(&self) -> Outcome {
        let life = || self.life.clone();
        let sha256 = told("SDK_BODY_SHA256");
        let length: i64 = told("SDK_BODY_LENGTH").parse()?;
        let odd = self.put("put-odd-key").key(told("SDK_ODD_KEY"));
        let metadata = self.put("put-metadata").metadata("one", "1").metadata("Two", "second");
        for (case, request) in [
            ("put", self.put("put")),
            ("put-odd-key", odd),
            ("put-metadata", metadata.content_type("text/x").cache_control("no-cache")),
            ("put-acl", self.put("put-acl").acl(ObjectCannedAcl::Private)),
            ("put-if-none-match", self.put("put-if-none-match").if_none_match("*")),
            ("put-content-length", self.put("put-content-length").content_length(length)),
            ("put-sha256", self.put("put-sha256").checksum_sha256(sha256)),
            ("put-tagging", self.put("put-tagging").tagging("a=b")),
            ("put-encrypted", self.put("put-encrypted").server_side_encryption(ServerSideEncryption::Aes256)),
        ] {
            said(case, &request.presigned(life()).await?);
        }
        Ok(())
    }

    async fn presign(&self) -> Outcome {
        let life = || self.life.clone();
        self.presign_puts().await?;
        let get = |case: &str| self.client.get_object().bucket(&self.bucket).key(key_of(case));
        let disposition = "attachment; filename=\"a b\"";
        let overrides = get("get").response_content_type("text/other");
        for (case, request) in [
            ("get", get("get")),
            ("get-overrides", overrides.response_content_disposition(disposition)),
            ("get-checksum-unsigned", get("get-checksum-unsigned").checksum_mode(ChecksumMode::Enabled)),
            ("get-missing", get("get-missing")),
        ] {
            said(case, &request.presigned(life()).await?);
        }
        let why = "it says to send x-amz-checksum-mode, and does not sign it";
        say(&json!({"case": "get-checksum", "skip": why}));
        let head = self.client.head_object().bucket(&self.bucket).key(key_of("head"));
        said("head", &head.presigned(life()).await?);
        let delete = self.client.delete_object().bucket(&self.bucket).key(key_of("delete"));
        said("delete", &delete.presigned(life()).await?);
        say(&json!({"case": "create", "skip": "its presigner has no such operation"}));
        Ok(())
    }

    async fn presign_upload(&self, upload_id: &str) -> Outcome {
        for number in 1..=2 {
            let part = self.client.upload_part().bucket(&self.bucket).key(key_of("upload"));
            let part = part.upload_id(upload_id).part_number(number);
            said(&format!("part-{number}"), &part.presigned(self.life.clone()).await?);
        }
        say(&json!({"case": "complete", "skip": "its presigner has no such operation"}));
        Ok(())
    }

    fn kept(&self, key: &str) -> PutObjectFluentBuilder {
        self.client.put_object().bucket(&self.bucket).key(key).body(ByteStream::from_static(b"kept"))
    }

    async fn get(&self) -> Outcome {
        let got = self.client.get_object().bucket(&self.bucket).key("kept").send().await?;
        let got = got.body.collect().await?.into_bytes();
        expect(got.as_ref() == b"kept", got)
    }

    async fn head(&self) -> Outcome {
        let got = self.client.head_object().bucket(&self.bucket).key("kept").send().await?;
        let one = got.metadata().and_then(|all| all.get("one")).map(String::as_str);
        let right =
            got.content_length() == Some(4) && one == Some("1") && got.content_type() == Some("text/x");
        expect(right, got)
    }

    async fn list(&self) -> Outcome {
        let got = self.client.list_objects_v2().bucket(&self.bucket).prefix("k").send().await?;
        let keys: Vec<&str> = got.contents().iter().filter_map(|object| object.key()).collect();
        expect(keys == ["kept"], keys)
    }

    async fn copy(&self) -> Outcome {
        let source = format!("{}/kept", self.bucket);
        self.client.copy_object().bucket(&self.bucket).key("copied").copy_source(source).send().await?;
        Ok(())
    }

    async fn multipart(&self) -> Outcome {
        let upload = self.client.create_multipart_upload().bucket(&self.bucket).key("multi").send().await?;
        let upload_id = upload.upload_id().ok_or("no upload id")?;
        let mut parts = CompletedMultipartUpload::builder();
        for (number, body) in [(1, vec![b'a'; 5 << 20]), (2, vec![b'b'; 1000])] {
            let part = self.client.upload_part().bucket(&self.bucket).key("multi").upload_id(upload_id);
            let got = part.part_number(number).body(ByteStream::from(body)).send().await?;
            let done = CompletedPart::builder().part_number(number).set_e_tag(got.e_tag().map(Into::into));
            parts = parts.parts(done.set_checksum_crc32(got.checksum_crc32().map(Into::into)).build());
        }
        let complete = self.client.complete_multipart_upload().bucket(&self.bucket).key("multi");
        complete.upload_id(upload_id).multipart_upload(parts.build()).send().await?;
        Ok(())
    }

    async fn others(&self) -> Outcome {
        let (client, bucket) = (&self.client, &self.bucket);
        client.head_bucket().bucket(bucket).send().await?;
        client.list_buckets().send().await?;
        client.get_bucket_location().bucket(bucket).send().await?;
        client.list_objects().bucket(bucket).send().await?;
        client.list_object_versions().bucket(bucket).send().await?;
        client.get_object().bucket(bucket).key("kept").range("bytes=1-2").send().await?;
        let attributes = client.get_object_attributes().bucket(bucket).key("kept");
        let attributes = attributes.object_attributes(ObjectAttributes::Etag);
        attributes.object_attributes(ObjectAttributes::Checksum).send().await?;
        let key = "copied-part";
        let upload = client.create_multipart_upload().bucket(bucket).key(key).send().await?;
        let upload_id = upload.upload_id().ok_or("no upload id")?;
        let part = client.upload_part_copy().bucket(bucket).key(key).upload_id(upload_id).part_number(1);
        part.copy_source(format!("{bucket}/multi")).copy_source_range("bytes=0-99").send().await?;
        let parts = client.list_parts().bucket(bucket).key(key).upload_id(upload_id).send().await?;
        let uploads = client.list_multipart_uploads().bucket(bucket).send().await?;
        client.abort_multipart_upload().bucket(bucket).key(key).upload_id(upload_id).send().await?;
        let sizes: Vec<_> = parts.parts().iter().filter_map(|part| part.size()).collect();
        expect(sizes == [100] && uploads.uploads().len() == 1, sizes)
    }

    async fn delete(&self) -> Outcome {
        self.kept("gone").send().await?;
        self.client.delete_object().bucket(&self.bucket).key("gone").send().await?;
        Ok(())
    }

    async fn delete_many(&self) -> Outcome {
        let mut objects = Delete::builder();
        for key in ["gone-1", "gone-2"] {
            self.kept(key).send().await?;
            objects = objects.objects(ObjectIdentifier::builder().key(key).build()?);
        }
        let got = self.client.delete_objects().bucket(&self.bucket).delete(objects.build()?).send().await?;
        expect(got.deleted().len() == 2, got)
    }

    async fn use_it(&self) {
        let create = self.client.create_bucket().bucket(&self.bucket).send().await;
        step("create-bucket", create.map(drop).map_err(Into::into));
        let put = self.kept("kept").metadata("one", "1").content_type("text/x").send().await;
        step("put", put.map(drop).map_err(Into::into));
        let checked = self.kept("checked").checksum_algorithm(ChecksumAlgorithm::Sha256).send().await;
        step("put-sha256", checked.map(drop).map_err(Into::into));
        let again = self.kept("kept").if_none_match("*").send().await;
        step("put-condition", refused("PreconditionFailed", again));
        step("get", self.get().await);
        step("head", self.head().await);
        step("list", self.list().await);
        step("copy", self.copy().await);
        step("multipart", self.multipart().await);
        say(&json!({"step": "uploader", "skip": "its uploader is another package"}));
        step("others", self.others().await);
        step("delete", self.delete().await);
        step("delete-many", self.delete_many().await);
        let missing = self.client.get_object().bucket(&self.bucket).key("gone").send().await;
        step("missing", refused("NoSuchKey", missing));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let credentials = Credentials::new(told("SDK_ACCESS_KEY"), told("SDK_SECRET_KEY"), None, None, "tests");
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(told("SDK_ENDPOINT"))
        .region(Region::new(told("SDK_REGION")))
        .force_path_style(true)
        .retry_config(RetryConfig::disabled())
        .credentials_provider(credentials)
        .build();
    let program = Program {
        client: Client::from_conf(config),
        bucket: told("SDK_BUCKET"),
        life: PresigningConfig::expires_in(Duration::from_secs(300))?,
    };
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["presign"] => program.presign().await,
        ["presign-upload", upload_id] => program.presign_upload(upload_id).await,
        ["use"] => {
            program.use_it().await;
            Ok(())
        }
        _ => Err(format!("{arguments:?} is not understood").into()),
    }
}
