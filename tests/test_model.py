"""Random operations through two gateways and by hand, compared with a dictionary after each step."""

import random
from dataclasses import dataclass, field

import pytest

from support import expect
from support.bucket import Bucket
from support.checksums import content_md5
from support.model import list_page
from support.server import assert_nothing_staged, by_other_mount
from support.xml import element

STEPS = 800
# Few components, so that files, directories, directory objects and escaped names meet all the time.
COMPONENTS = ["a", "b", "", ".", "..", ".slipway", "n" * 256, "é"]


@dataclass
class Walk:
    """One random walk: the truth, and how it is changed."""

    gateways: list[Bucket]
    chance: random.Random
    truth: dict[str, bytes] = field(default_factory=dict)
    by_hand: int = 0

    def key(self) -> str:
        if self.truth and self.chance.random() < 0.4:
            return self.chance.choice(sorted(self.truth))
        while True:
            count = self.chance.randrange(1, 4)
            key = "/".join(self.chance.choice(COMPONENTS) for _ in range(count))
            if key:
                return key

    def bucket(self) -> Bucket:
        return self.chance.choice(self.gateways)

    def body(self) -> bytes:
        return self.chance.randbytes(self.chance.choice([0, 1, 50, 3000, 100_000]))

    def put(self) -> None:
        key, body = self.key(), self.body()
        self.bucket().put(key, body)
        self.truth[key] = body

    def put_if_absent(self) -> None:
        key, body = self.key(), self.body()
        response = self.bucket().raw.put(self.bucket().path(key), body, headers={"if-none-match": "*"})
        if key in self.truth:
            expect.error(response, "PreconditionFailed", Condition="If-None-Match")
        else:
            expect.ok(response)
            self.truth[key] = body

    def upload(self) -> None:
        key, body = self.key(), self.body()
        bucket = self.bucket()
        upload_id = bucket.create_upload(key)
        etag = expect.ok(self.bucket().put_part(key, upload_id, 1, body)).etag
        if self.chance.random() < 0.3:
            expect.ok(self.bucket().abort(key, upload_id), 204)
            return
        expect.ok(self.bucket().complete(key, upload_id, [(1, etag)]))
        self.truth[key] = body

    def copy(self) -> None:
        source, target = self.key(), self.key()
        bucket = self.bucket()
        headers = {"x-amz-copy-source": bucket.path(source), "x-amz-metadata-directive": "REPLACE"}
        response = bucket.raw.put(bucket.path(target), headers=headers)
        if source in self.truth:
            expect.ok(response)
            self.truth[target] = self.truth[source]
        else:
            expect.error(response, "NoSuchKey", Key=source)

    def delete(self) -> None:
        key = self.key()
        expect.ok(self.bucket().delete(key), 204)
        self.truth.pop(key, None)

    def delete_many(self) -> None:
        keys = sorted({self.key() for _ in range(self.chance.randrange(1, 6))})
        document = element("Delete", *[element("Object", Key=key) for key in keys]).encode()
        headers = {"content-md5": content_md5(document)}
        bucket = self.bucket()
        response = bucket.raw.post(bucket.path(), document, query={"delete": ""}, headers=headers)
        assert [entry["Key"] for entry in expect.ok(response).xml.all("Deleted")] == keys
        for key in keys:
            self.truth.pop(key, None)

    def write_by_hand(self) -> None:
        """Another program makes a file, in a directory of its own, or edits one."""
        self.by_hand += 1
        key = f"hand{self.by_hand % 5}/file{self.by_hand % 3}"
        body = self.body()
        path = self.gateways[0].file(key)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(body)
        self.truth[key] = body

    def remove_by_hand(self) -> None:
        for key in sorted(self.truth):
            if key.startswith("hand") and (path := self.gateways[0].file(key)).is_file():
                path.unlink()
                del self.truth[key]
                return

    def check_key(self) -> None:
        key, bucket = self.key(), self.bucket()
        if key in self.truth:
            assert bucket.read(key) == self.truth[key], key
        else:
            expect.error(bucket.get(key), "NoSuchKey", Key=key)

    def check_listing(self) -> None:
        prefix = self.chance.choice(["", "", "a", "a/", "hand", "./", "é/", ".slipway/"])
        delimiter = self.chance.choice(["", "/", "/", "b"])
        size = self.chance.choice([1, 3, 1000])
        page = self.bucket().page(prefix=prefix, delimiter=delimiter, max_keys=str(size))
        expected = list_page(list(self.truth), prefix, delimiter, "", size)
        assert [entry["Key"] for entry in page.all("Contents")] == expected.keys, (prefix, delimiter, size)
        assert [entry["Prefix"] for entry in page.all("CommonPrefixes")] == expected.prefixes
        assert page["IsTruncated"] == str(expected.truncated).lower()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_walk(make_server, seed):
    first = make_server("--durability", "none")
    servers = [first, make_server("--durability", "none", tree=by_other_mount(first.tree))]
    Bucket(servers[0], "bucket").create()
    walk = Walk([Bucket(server, "bucket") for server in servers], random.Random(seed))
    changes = (
        [walk.put] * 4
        + [walk.delete] * 3
        + [
            walk.put_if_absent,
            walk.upload,
            walk.copy,
            walk.delete_many,
            walk.write_by_hand,
            walk.remove_by_hand,
        ]
    )
    for _ in range(STEPS):
        walk.chance.choice(changes)()
        walk.check_key()
        walk.check_listing()
    for bucket in walk.gateways:
        assert bucket.keys() == sorted(walk.truth, key=str.encode)
        for key, body in walk.truth.items():
            assert bucket.read(key) == body, key
    for key in list(walk.truth):
        expect.ok(walk.bucket().delete(key), 204)
    assert walk.gateways[0].is_untouched()
    assert_nothing_staged(walk.gateways[0].tree)
    left = {path.name for path in walk.gateways[0].tree.iterdir()} - {".slipway"}
    assert all(name.startswith("hand") for name in left), "only directories that a person made are left"
