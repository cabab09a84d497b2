"""`--impersonate`: what it refuses has its reason in the logs, and not in the answer."""

from collections.abc import Iterator

import pytest
from test_audit import all_lines, refusal

from support.identities import code_of
from support.impersonation import ENV, Scene
from support.marks import needs_impersonation
from support.registry import Registry
from support.wire import poll

pytestmark = needs_impersonation


@pytest.fixture
def scene(make_server, tmp_path) -> Iterator[Scene]:
    tree = tmp_path / "tree"
    tree.mkdir(mode=0o755)
    options = ("--durability", "none", "--log", "debug", "--audit-log", str(tmp_path / "audit.log"))
    server = make_server("--impersonate", *options, tree=tree, env=ENV)
    with Registry(server.tree, server.account) as registry:
        yield Scene(server, registry)


def known(scene: Scene, name: str):
    """A client of a user without a POSIX identity, once the gateway knows it."""
    s3 = scene.client(scene.signer(name))
    poll(lambda: code_of(s3.list_buckets) != "InvalidAccessKeyId", 10)
    return s3


def told(scene: Scene, tmp_path, call, **members) -> tuple[str, str]:
    """Who decided by the audit log, and the line about it in the log, for a request that is refused."""
    answer = refusal(call, **members)
    # The sentence that each refusal by a policy has, too.
    error, request = answer["Error"], answer["ResponseMetadata"]["RequestId"]
    assert (error["Code"], error["Message"]) == ("AccessDenied", "Access Denied")

    def lines() -> list[str]:
        return [line for line in scene.server.log.splitlines() if request in line and "causes" in line]

    def denials() -> list[dict]:
        lines = all_lines(tmp_path / "audit.log")
        return [line for line in lines if line["request_id"] == request and line["outcome"] == "deny"]

    assert poll(lambda: len(lines()) == 1 and len(denials()) == 1, 10), scene.server.log
    return denials()[0]["decided_by"], lines()[0]


def test_who_has_no_posix_identity(scene, tmp_path):
    s3 = known(scene, "nobody")
    scene.ann.put_object(Bucket="lab", Key="a", Body=b"1")
    for call, members in (
        (s3.get_object, {"Bucket": "lab", "Key": "a"}),
        (s3.put_object, {"Bucket": "lab", "Key": "b", "Body": b"1"}),
        (s3.list_objects_v2, {"Bucket": "lab"}),
    ):
        by, line = told(scene, tmp_path, call, **members)
        assert by == "file-system"
        assert "DEBUG" in line and "no POSIX identity" in line, line


def test_what_the_kernel_closes_to_a_user(scene, tmp_path):
    for key in ("shut/a", "mine"):
        scene.ann.put_object(Bucket="lab", Key=key, Body=b"1")
    lab = scene.server.tree / "lab"
    (lab / "shut").chmod(0o700)
    (lab / "mine").chmod(0o600)
    # In a key, a secret is left out of all fields of the line.
    secret = "shut?X-Amz-Signature=0123456789abcdef"
    scene.ann.put_object(Bucket="lab", Key=secret, Body=b"1")
    (lab / secret).chmod(0o600)
    source = {"Bucket": "lab", "Key": "mine"}
    for closed, call, members in (
        ("lab/shut", scene.bob.get_object, {"Key": "shut/a"}),
        ("lab/shut", scene.bob.put_object, {"Key": "shut/b", "Body": b"1"}),
        ("lab/shut", scene.bob.list_objects_v2, {"Prefix": "shut/"}),
        ("lab/mine", scene.bob.get_object, {"Key": "mine"}),
        ("lab/mine", scene.bob.copy_object, {"Key": "copy", "CopySource": source}),
        ("lab/shut?X-Amz-Signature=REDACTED", scene.bob.get_object, {"Key": secret}),
    ):
        by, line = told(scene, tmp_path, call, Bucket="lab", **members)
        assert by == "file-system" and "DEBUG" in line, (by, line)
        assert f"the file system denied permission to the requester ({closed}" in line, line
        assert "0123456789abcdef" not in line, line


def test_the_upload_of_another_user(scene, tmp_path):
    begun = scene.bob.create_multipart_upload(Bucket="lab", Key="a")
    upload = {name: begun[name] for name in ("Bucket", "Key", "UploadId")}
    part = scene.bob.upload_part(PartNumber=1, Body=b"1", **upload)
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    calls = [
        (scene.ann.list_parts, upload),
        (scene.ann.complete_multipart_upload, {**upload, "MultipartUpload": parts}),
    ]
    for call, members in calls:
        by, line = told(scene, tmp_path, call, **members)
        assert by == "file-system" and "DEBUG" in line and "another user" in line, (by, line)
    scene.bob.complete_multipart_upload(MultipartUpload=parts, **upload)
    # Nor is the answer of its completion for others.
    by, line = told(scene, tmp_path, scene.ann.complete_multipart_upload, **calls[1][1])
    assert by == "file-system" and "another user" in line, (by, line)
