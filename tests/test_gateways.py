"""Two gateways on one tree at the same time, by two mounts of it where `SLIPWAY_TWO_MOUNTS` tells of them."""

import os
import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from file_systems import mounts

from support import expect
from support.bucket import Bucket
from support.data import pattern
from support.server import assert_nothing_staged, by_other_mount
from support.wire import poll

MIB = 1 << 20
# Of rounds in which all of a large directory is listed, again and again, one in so many is made
# where each key is ten messages.
SHARE = int(os.environ.get("SLIPWAY_RACE_SHARE", "1"))


@pytest.fixture
def gateways(make_server) -> list[Bucket]:
    first = make_server()
    second = make_server(tree=by_other_mount(first.tree))
    buckets = [Bucket(server, "bucket") for server in (first, second)]
    buckets[0].create()
    return buckets


def at_once(tasks: list) -> list:
    """The results of functions that start at the same moment."""
    barrier = Barrier(len(tasks))

    def run(task):
        barrier.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


@pytest.mark.parametrize("shape", ["new", "dir/new", "beside", "object/"])
def test_if_none_match_has_one_winner(gateways, shape):
    for number in range(8):
        key = f"{number}/{shape}" if shape != "object/" else f"object{number}/"
        if shape == "beside":
            gateways[0].put(f"{key}/below")

        def write(n: int, key: str = key):
            bucket = gateways[n % 2]
            return bucket.raw.put(bucket.path(key), b"%d" % n, headers={"if-none-match": "*"})

        answers = at_once([lambda n=n: write(n) for n in range(8)])
        winners = [n for n, answer in enumerate(answers) if answer.status == 200]
        assert len(winners) == 1, answers
        for n, answer in enumerate(answers):
            if n not in winners:
                # S3 says 409 where the writes were at the same time.
                assert answer.code in ("PreconditionFailed", "ConditionalRequestConflict"), answer
        for bucket in gateways:
            assert bucket.read(key) == b"%d" % winners[0]


@pytest.mark.parametrize("key", ["counter", "beside"])
def test_if_match_loses_no_update(gateways, key):
    gateways[0].put("beside/below")
    gateways[0].put(key, b"0")

    def count(bucket: Bucket) -> None:
        done = 0
        while done < 10:
            read = expect.ok(bucket.get(key))
            body = b"%d" % (int(read.body) + 1)
            answer = bucket.raw.put(bucket.path(key), body, headers={"if-match": read.headers["etag"]})
            if answer.status == 200:
                done += 1
            else:
                assert answer.code in ("PreconditionFailed", "ConditionalRequestConflict"), answer

    at_once([lambda n=n: count(gateways[n % 2]) for n in range(6)])
    for bucket in gateways:
        assert bucket.read(key) == b"60"


def test_what_is_acknowledged_is_seen_on_the_other(gateways):
    """Each worker has keys of its own, in directories that come and go under all of them."""
    names = ["a", "a/b", "a/b/", "d/e/f", "d/e", "d/g"]

    def work(n: int) -> None:
        chance, key = random.Random(n), names[n]
        here, there = gateways[n % 2], gateways[(n + 1) % 2]
        for round in range(15):
            body = b"%d %d" % (n, round)
            here.put(key, body)
            assert key in there.keys(prefix=chance.choice(["", key[:1]])), (key, round)
            assert there.read(key) == body
            expect.ok(there.delete(key), 204)
            assert key not in here.keys(), (key, round)
            expect.error(here.get(key), "NoSuchKey", Key=key)

    at_once([lambda n=n: work(n) for n in range(len(names))])
    for bucket in gateways:
        assert bucket.keys() == []


@pytest.mark.parametrize("change", ["replaced", "deleted"])
def test_a_download_goes_on_while_the_other_changes_the_object(gateways, change):
    """FUSE, asked about an open file by name, tells of what has the name by now on the other mount."""
    body = pattern(64 * MIB)
    here, there = gateways
    here.put("key", body)
    with here.raw.connect() as connection:
        connection.send(here.raw.prepare("GET", here.path("key")).bytes)
        assert connection.head().status == 200
        if change == "replaced":
            there.put("key", b"new")
        else:
            expect.ok(there.delete("key"), 204)
        assert connection.read(len(body)) == body
    assert there.exists("key") == (change == "replaced")


def test_listings_of_a_large_directory_show_each_write(gateways):
    """More names than are read anew for each listing."""
    keys = {f"d/{n:03}" for n in range(200)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: gateways[0].put(key), keys))
    for n in range(30 // SHARE):
        here, there = gateways[n % 2], gateways[(n + 1) % 2]
        assert here.keys() == there.keys() == sorted(keys)
        new, gone = f"d/new{n}", f"d/{n:03}"
        here.put(new)
        assert there.keys() == sorted({*keys, new})
        expect.ok(here.delete(gone), 204)
        keys = {*keys, new} - {gone}
        assert there.keys() == sorted(keys)


def test_a_file_becomes_a_directory_under_all_eyes(gateways):
    for n in range(12):
        key = f"d/{n}"
        gateways[0].put(key, b"whole")

        def look(key: str = key) -> None:
            for _ in range(5):
                assert gateways[1].read(key) == b"whole"
                assert key in gateways[1].keys()
                answer = gateways[1].raw.put(gateways[1].path(key), b"", headers={"if-none-match": "*"})
                assert answer.status in (409, 412), answer

        def below(bucket: Bucket, end: str, key: str = key) -> None:
            bucket.put(key + end)

        at_once([look, lambda put=below: put(gateways[0], "/1"), lambda put=below: put(gateways[1], "/2")])
        for bucket in gateways:
            assert bucket.keys(prefix=key) == [key, f"{key}/1", f"{key}/2"]
        for end in ("", "/1", "/2"):
            expect.ok(gateways[n % 2].delete(key + end), 204)


@pytest.mark.parametrize("size", [5 * MIB, 5 * MIB + 1], ids=["in-place", "odd"])
def test_parts_by_both_gateways(gateways, size):
    """Parts of a multiple of the page, which share a file, and others."""
    upload_id = gateways[0].create_upload("object")
    bodies = [random.Random(n).randbytes(size) for n in range(5)] + [b"end"]

    def send(n: int):
        return expect.ok(gateways[n % 2].put_part("object", upload_id, n + 1, bodies[n])).etag

    etags = at_once([lambda n=n: send(n) for n in range(len(bodies))])
    # One is sent again by the other gateway, with other bytes.
    bodies[2] = random.Random(9).randbytes(size)
    etags[2] = expect.ok(gateways[1].put_part("object", upload_id, 3, bodies[2])).etag
    parts = list(enumerate(etags, 1))
    answers = at_once([lambda b=b: b.complete("object", upload_id, parts) for b in gateways])
    # Who comes second waits for the first.
    assert all(answer.status == 200 for answer in answers), [answer.body for answer in answers]
    for bucket in gateways:
        assert bucket.read("object") == b"".join(bodies)
        again = expect.ok(bucket.complete("object", upload_id, parts))
        assert again.xml["ETag"] == bucket.head("object").headers["etag"]


def test_a_bucket_is_deleted_by_the_other(gateways):
    here, there = gateways
    if mounts.is_mounted(here.tree):
        pytest.skip("a mount point is not deleted")
    for n in range(5):
        here.put("a", b"1")
        there.put("a/b", b"2" * 300_000)
        here.put("a", b"3")
        expect.error(there.raw.delete(there.path()), "BucketNotEmpty", BucketName="bucket")
        for key in ("a", "a/b"):
            expect.ok(gateways[n % 2].delete(key), 204)
        expect.ok(there.raw.delete(there.path()), 204)
        expect.error(here.get("a"), "NoSuchBucket", BucketName="bucket")
        here.create()
    poll(lambda: here.keys() == [])
    assert_nothing_staged(here.tree)
