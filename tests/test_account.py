"""The account that a tree's buckets and objects belong to: who answers say it is, and where it is kept."""

import os
import re
import shutil
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import expect
from support.bucket import Bucket
from support.registry import MASTER_KEY, Registry, check_known, client
from support.server import ACCESS_KEY, KEYS, Server, StartFailed, binary, by_other_mount
from support.tools import run

OTHER = "111122223333"


def canonical_id(raw) -> str:
    """Whom the listing of buckets names as their owner."""
    return raw.get("/").xml.child("Owner")["ID"]


@pytest.fixture
def account(server) -> str:
    return server.account


class TestOwners:
    """Answers name the account's canonical id, and no key."""

    def test_buckets(self, raw):
        owner = raw.get("/").xml.child("Owner")
        assert re.fullmatch(r"[0-9a-f]{64}", owner["ID"])
        assert "DisplayName" not in owner

    @pytest.mark.parametrize(
        "query, entry",
        [
            ({}, "Contents"),
            ({"list-type": "2", "fetch-owner": "true"}, "Contents"),
            ({"versions": ""}, "Version"),
            ({"uploads": ""}, "Upload"),
        ],
    )
    def test_listings(self, bucket, query, entry):
        bucket.put("key", b"1")
        bucket.create_upload("key")
        answer = bucket.raw.get(bucket.path(), query=query)
        owner = expect.ok(answer).xml.all(entry)[0].child("Owner")
        assert owner["ID"] == canonical_id(bucket.raw)
        assert "DisplayName" not in owner
        assert ACCESS_KEY.encode() not in answer.body

    def test_initiators(self, bucket):
        """S3 sends a name with these alone."""
        upload_id = bucket.create_upload("key")
        bucket.put_part("key", upload_id, 1, b"x")
        uploads = bucket.raw.get(bucket.path(), query={"uploads": ""})
        parts = bucket.raw.get(bucket.path("key"), query={"uploadId": upload_id})
        for answer, element in ((uploads, uploads.xml.all("Upload")[0]), (parts, parts.xml)):
            initiator = element.child("Initiator")
            assert (initiator["ID"], initiator["DisplayName"]) == (canonical_id(bucket.raw), "root")
            assert "DisplayName" not in element.child("Owner")
            assert ACCESS_KEY.encode() not in answer.body


class TestExpectedOwner:
    def test_right(self, bucket, account):
        header = {"x-amz-expected-bucket-owner": account}
        expect.ok(bucket.raw.head(bucket.path(), headers=header))
        expect.ok(bucket.raw.get(bucket.path(), headers=header))
        expect.ok(bucket.raw.put(bucket.path("a"), b"x", headers=header))
        expect.ok(bucket.raw.get(bucket.path("a"), headers=header))
        source = {"x-amz-copy-source": f"{bucket.name}/a", "x-amz-source-expected-bucket-owner": account}
        expect.ok(bucket.raw.put(bucket.path("b"), headers=header | source))
        expect.ok(bucket.raw.delete(bucket.path("b"), headers=header), 204)

    def test_wrong(self, bucket):
        bucket.put("a", b"1")
        header = {"x-amz-expected-bucket-owner": OTHER}
        expect.head_error(bucket.raw.head(bucket.path(), headers=header), 403)
        expect.head_error(bucket.raw.head(bucket.path("a"), headers=header), 403)
        for answer in (
            bucket.raw.get(bucket.path(), headers=header),
            bucket.raw.get(bucket.path("a"), headers=header),
            bucket.raw.put(bucket.path("a"), b"2", headers=header),
            bucket.raw.put(bucket.path("b"), b"2", headers=header),
            bucket.raw.delete(bucket.path("a"), headers=header),
            bucket.raw.delete(bucket.path(), headers=header),
            bucket.raw.post(bucket.path("c"), query={"uploads": ""}, headers=header),
        ):
            expect.error(answer, "AccessDenied")
        assert bucket.read("a") == b"1"
        assert bucket.keys() == ["a"]

    def test_of_a_source(self, bucket, account):
        bucket.put("a", b"1")
        for source, of_source, copied in (("a", account, True), ("a", OTHER, False)):
            headers = {
                "x-amz-copy-source": f"{bucket.name}/{source}",
                "x-amz-source-expected-bucket-owner": of_source,
                "x-amz-expected-bucket-owner": account,
            }
            answer = bucket.raw.put(bucket.path(f"copy-{copied}"), headers=headers)
            expect.ok(answer) if copied else expect.error(answer, "AccessDenied")
        assert bucket.keys() == ["a", "copy-True"]

    @pytest.mark.parametrize("text", ["0000", "0000000000020", "abcd", "aa000000000$", "1234-5678-9012"])
    @pytest.mark.parametrize("header", ["x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"])
    def test_no_account_id(self, bucket, header, text):
        bucket.put("a", b"1")
        answer = bucket.raw.put(
            bucket.path("b"), headers={"x-amz-copy-source": f"{bucket.name}/a", header: text}
        )
        sentence = f"The value of the expected bucket owner parameter must be an AWS Account ID... [{text}]"
        expect.error(answer, "InvalidBucketOwnerAWSAccountID", sentence)
        assert bucket.keys() == ["a"]

    def test_more_than_one_or_no_text(self, bucket, account):
        """What cannot be understood is not passed over."""
        bucket.put("a", b"1")
        name = "x-amz-expected-bucket-owner"
        for pairs in ([(name, account), (name, OTHER)], [(name, "\u00ff999")]):
            answer = bucket.raw.delete(bucket.path("a"), headers=pairs)
            expect.error(answer, "InvalidBucketOwnerAWSAccountID", re.compile("."))
        assert bucket.keys() == ["a"]

    @pytest.mark.parametrize("text", [ACCESS_KEY, "canonical"])
    def test_no_other_name_of_the_owner(self, bucket, text):
        text = canonical_id(bucket.raw) if text == "canonical" else text
        answer = bucket.raw.get(bucket.path(), headers={"x-amz-expected-bucket-owner": text})
        expect.error(answer, "InvalidBucketOwnerAWSAccountID", re.compile("must be an AWS Account ID"))


class TestKept:
    def file(self, server: Server):
        return server.tree / ".slipway" / "account.toml"

    def at_once(self, start, count: int) -> list[Server]:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(start, range(count)))

    def test_once(self, make_server):
        """It is the same after a restart, and on another gateway of the tree."""
        first = make_server()
        made, shown = first.account, canonical_id(first.raw)
        assert re.fullmatch(r"[1-9][0-9]{11}", made)
        assert f'account_id = "{made}"' in self.file(first).read_text().splitlines()
        assert stat.S_IMODE(self.file(first).stat().st_mode) == 0o644
        beside = make_server(tree=by_other_mount(first.tree))
        assert (beside.account, canonical_id(beside.raw)) == (made, shown)
        for running in (first, beside):
            running.stop()
        again = make_server()
        assert (again.account, canonical_id(again.raw)) == (made, shown)

    def test_with_other_keys(self, make_server):
        """Who changes root's keys changes no owner."""
        first = make_server()
        keys = {"SLIPWAY_ROOT_ACCESS_KEY": "rotated", "SLIPWAY_ROOT_SECRET_KEY": "another-secret"}
        second = make_server(env=keys)
        assert second.account == first.account

    def test_each_tree_has_its_own(self, make_server, tmp_path):
        first, second = (make_server(tree=tmp_path / name) for name in ("one", "two"))
        assert first.account != second.account
        assert canonical_id(first.raw) != canonical_id(second.raw)

    def test_gateways_that_start_at_once_agree(self, tmp_path):
        tree = tmp_path / "shared"
        tree.mkdir()
        servers = self.at_once(lambda n: Server(tree, log=tmp_path / f"s{n}.log"), 4)
        try:
            assert len({canonical_id(server.raw) for server in servers}) == 1
            assert {server.account for server in servers} == {servers[0].account}
            names = set(os.listdir(tree / ".slipway")) - {"metadata"}
            assert names == {"account.toml", "tree.toml", "gateways"}
        finally:
            for server in servers:
                server.stop()

    def test_without_hard_links(self, tmp_path, make_server, show):
        """As of a `.slipway` that is a file system of its own: two that start at once agree all the same."""
        state = tmp_path / "tree" / ".slipway"
        state.mkdir(parents=True, mode=0o700)
        show("--no-links", "--rename-flags", at=state).chmod(0o700)
        first, second = self.at_once(lambda _: make_server(env={}), 2)
        assert first.account == second.account
        assert f'account_id = "{first.account}"' in self.file(first).read_text().splitlines()
        names = {"account.toml", "credentials.toml", "tree.toml", "gateways"}
        assert set(os.listdir(state)) - {"metadata"} == names
        for running in (first, second):
            running.stop()
        assert make_server(env={}).account == first.account

    def test_without_any_way_to_take_a_free_name(self, tmp_path, make_server, show):
        """Then it is for one run, unless it is given; and keys have to be."""
        state = tmp_path / "tree" / ".slipway"
        state.mkdir(parents=True, mode=0o700)
        show("--no-links", at=state).chmod(0o700)
        assert "the account id cannot be stored" in make_server().log
        assert make_server("--account-id", OTHER).account == OTHER
        with pytest.raises(StartFailed, match=r"credentials\.toml: "):
            make_server(env={})
        assert set(os.listdir(state)) <= {"metadata", "gateways"}

    @pytest.mark.parametrize("text", [b"", b'account_id = "12"\n', b"account_id = ", b"\xff\x00", b"[x]\n"])
    def test_a_damaged_file(self, make_server, text):
        server = make_server()
        server.stop()
        self.file(server).write_bytes(text)
        with pytest.raises(StartFailed, match=r"account\.toml: "):
            make_server()
        assert self.file(server).read_bytes() == text

    def test_what_is_no_file(self, make_server):
        """Neither is a link followed, nor a pipe waited for."""
        server = make_server()
        server.stop()
        for make in (lambda path: path.symlink_to("/etc/hostname"), os.mkfifo, os.mkdir):
            path = self.file(server)
            path.rmdir() if path.is_dir() else path.unlink()
            make(path)
            with pytest.raises(StartFailed, match="not a regular file"):
                make_server()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
    def test_a_tree_that_cannot_be_written_to(self, make_server):
        """Its account is for one run, unless it is given."""
        # pytest's own directories are closed to others, and the checkout may be.
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            place.chmod(0o755)
            program = shutil.copy(binary(), place / "slipway")
            tree = place / "tree"
            (tree / "bucket").mkdir(parents=True)
            (tree / "bucket" / "key").write_text("x")
            first = make_server(tree=tree, as_nobody=True, program=program)
            assert "the account id cannot be stored" in first.log
            expect.ok(first.raw.get("/bucket/key"))
            assert not (tree / ".slipway").exists()
            given = make_server("--account-id", OTHER, tree=tree, as_nobody=True, program=program)
            assert given.account == OTHER
            # What is given is the same after each start.
            assert (
                "the same --account-id at each start" in given.log
                and "each start generates another" not in given.log
            )
            with pytest.raises(
                StartFailed, match="--credentials-file, or in the variables SLIPWAY_ROOT_ACCESS_KEY and SLIPW"
            ):
                make_server(tree=tree, as_nobody=True, program=program, env={})

    def test_where_nothing_is_stored(self, make_server):
        server = make_server("--account-id", OTHER, tree="null:")
        assert server.account == OTHER
        assert re.fullmatch(r"[1-9][0-9]{11}", make_server(tree="null:").account)


class TestGiven:
    def test_it_is_kept(self, make_server):
        given = make_server("--account-id", "012345678901")
        assert given.account == "012345678901"
        bucket = Bucket(given, "bucket").create()
        header = {"x-amz-expected-bucket-owner": "012345678901"}
        expect.ok(bucket.raw.get(bucket.path(), headers=header))
        shown = canonical_id(given.raw)
        given.stop()
        again = make_server()
        assert (again.account, canonical_id(again.raw)) == ("012345678901", shown)

    def test_one_account_has_one_canonical_id(self, make_server, tmp_path):
        servers = [make_server("--account-id", OTHER, tree=tmp_path / name) for name in ("one", "two")]
        assert len({canonical_id(server.raw) for server in servers}) == 1

    def test_another_than_the_tree_has(self, make_server):
        """Two gateways of one tree would name two owners."""
        first = make_server()
        with pytest.raises(StartFailed, match=f"belongs to account {first.account}, not {OTHER}"):
            make_server("--account-id", OTHER)
        assert make_server("--account-id", first.account).account == first.account

    def test_with_users_it_is_kept(self, make_server):
        """With another id all users would be left behind: they are the account's."""
        env = {**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY}
        first = make_server(env=env)
        with Registry(first.tree, first.account) as registry:
            key = registry.user("alice")
        first.stop()
        file = first.tree / ".slipway" / "account.toml"
        kept = file.read_text()
        changed = kept.replace(first.account, OTHER)
        for text, options in ((changed, ()), (None, ("--account-id", OTHER)), (changed, ("--read-only",))):
            file.unlink() if text is None else file.write_text(text)
            says = f"account of the directory is {OTHER}, .* stored are of the account {first.account}"
            with pytest.raises(StartFailed, match=says) as refused:
                make_server(*options, env=env)
            assert f'write account_id = "{first.account}" into {file}' in str(refused.value)
            assert f"identities-damaged: {file}: " in run("fsck", first.tree, status=1)
        assert run("fsck", first.tree, status=1).count(first.account) >= 1
        file.write_text(kept)
        assert "0 problems" in run("fsck", first.tree)
        check_known(client(make_server(env=env), key))

    def test_without_users_it_can_be_changed(self, make_server):
        first = make_server()
        first.stop()
        file = first.tree / ".slipway" / "account.toml"
        file.write_text(file.read_text().replace(first.account, OTHER))
        assert make_server().account == OTHER

    @pytest.mark.parametrize("text", ["", "12345678901", "1234567890123", "1234-5678-90", "x23456789012"])
    def test_no_account_id(self, make_server, text):
        with pytest.raises(StartFailed, match="12 decimal digits"):
            make_server("--account-id", text)
