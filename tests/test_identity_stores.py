"""Users and their keys in a store beside the tree (--identities): two gateways of different directories share it."""

import os
import signal
import statistics
import subprocess
import threading
import time
from pathlib import Path

import pytest

from support import identities, openid, stores
from support.identities import allow, code_of, new_key, new_user
from support.registry import MASTER_KEY, check_known
from support.server import KEYS, SECRET_KEY, Server, StartFailed, binary
from support.sigv4 import Signer
from support.transports import make_certificate
from support.wire import RawClient, poll

SECOND = 1.0
ROUNDS = 5
ACCOUNT = "123456789012"
ENV = {**KEYS, "SLIPWAY_MASTER_KEY": MASTER_KEY}


@pytest.fixture(scope="module", params=["bucket", "vault"])
def one_store(request, tmp_path_factory):
    """A store that tests share; each has an account of its own."""
    store = stores.make(request.param, tmp_path_factory.mktemp("store"))
    yield store
    store.stop()


@pytest.fixture(params=["bucket", "vault"])
def own_store(request, tmp_path):
    """A store that a test may stop."""
    store = stores.make(request.param, tmp_path / "store")
    yield store
    store.stop()


def options_of(store, folder: Path, credentials: str | None = None) -> list[str]:
    file = folder / f"{store.kind}-credentials.toml"
    file.write_text(credentials or store.credentials)
    file.chmod(0o600)
    return ["--identities", store.url, "--identities-credentials-file", str(file)]


def gateways(make_server, store, folder: Path, *more: str) -> list[Server]:
    """Two gateways, each with a directory of its own."""
    options = [*options_of(store, folder), "--account-id", ACCOUNT, "--ops-listen", "127.0.0.1:0", *more]
    return [make_server(*options, tree=folder / f"tree-{number}", env=ENV) for number in (1, 2)]


def asker(server: Server, key: tuple) -> RawClient:
    return RawClient(server.address, Signer(key[0], key[1]))


def wait_for(client: RawClient, code: str, most: float = 5 * SECOND) -> float:
    """Sends requests until one is answered with the code, and returns how long after now the last one was sent that
    was not."""
    acknowledged = last = time.monotonic()
    while True:
        sent = time.monotonic()
        if client.get("/").code == code:
            return last - acknowledged
        last = sent
        assert sent - acknowledged < most, code
        time.sleep(0.005)


def test_users_of_one_gateway_work_on_the_other_at_once(make_server, one_store, tmp_path):
    one, other = gateways(make_server, one_store, tmp_path)
    name = f"ann-{one_store.kind}-1"
    key = new_user(one, name, allow("s3:*"))
    for number, server in enumerate((one, other)):
        s3 = identities.client(server, "s3", key)
        s3.create_bucket(Bucket=f"lab-{number}")
        s3.put_object(Bucket=f"lab-{number}", Key="k", Body=b"x")
    # Of each directory, its own buckets.
    assert identities.client(one, "s3", key).list_buckets()["Buckets"][0]["Name"] == "lab-0"
    arn = identities.client(other, "iam").get_user(UserName=name)["User"]["Arn"]
    assert arn == f"arn:aws:iam::{ACCOUNT}:user/{name}"
    assert not (one.tree / ".slipway" / "iam").exists()
    # A session that one gave out, the other knows.
    session = identities.key_of(identities.client(one, "sts", key).get_session_token()["Credentials"])
    assert identities.client(other, "s3", session).list_objects_v2(Bucket="lab-1")["KeyCount"] == 1


def test_a_key_that_is_disabled_is_refused_within_a_second(make_server, one_store, tmp_path):
    servers = gateways(make_server, one_store, tmp_path)
    name = f"bob-{one_store.kind}"
    key = new_user(servers[0], name)
    times = []
    for round in range(ROUNDS):
        by, at = servers[round % 2], servers[1 - round % 2]
        iam, client = identities.client(by, "iam"), asker(at, key)
        wait_for(client, "AccessDenied")
        iam.update_access_key(UserName=name, AccessKeyId=key[0], Status="Inactive")
        times.append(wait_for(client, "InvalidAccessKeyId"))
        iam.update_access_key(UserName=name, AccessKeyId=key[0], Status="Active")
        times.append(wait_for(client, "AccessDenied"))
    print(
        f"{one_store.kind}: seen after {statistics.median(times):.3f} s (median), {max(times):.3f} s (most)"
    )
    assert max(times) < SECOND, times


def test_changes_of_two_gateways_at_once_are_all_there(make_server, one_store, tmp_path):
    servers = gateways(make_server, one_store, tmp_path)
    each, failed = 12, []

    def make(server: Server, side: str) -> None:
        iam = identities.client(server, "iam")
        for number in range(each):
            name = f"of-{one_store.kind}-{side}-{number}"
            # Ten attempts of a gateway may all be overtaken; its client then asks again.
            for _ in range(5):
                try:
                    iam.create_user(UserName=name)
                    break
                except iam.exceptions.ConcurrentModificationException as error:
                    failed.append(error)

    threads = [threading.Thread(target=make, args=pair) for pair in zip(servers, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in servers:
        users = identities.client(server, "iam").list_users(MaxItems=1000)["Users"]
        names = {user["UserName"] for user in users}
        wanted = {f"of-{one_store.kind}-{side}-{number}" for side in "ab" for number in range(each)}
        assert wanted <= names, (wanted - names, failed)


def test_nothing_secret_can_be_read_in_the_store(make_server, one_store, tmp_path):
    one, other = gateways(make_server, one_store, tmp_path, "--log", "trace")
    key = new_user(one, f"eve-{one_store.kind}")
    wait_for(asker(other, key), "AccessDenied")
    kept = one_store.at_rest()
    assert key[0].encode() in kept and f"eve-{one_store.kind}".encode() in kept
    said = [kept, one.log.encode(), other.log.encode()]
    for secret in (key[1], MASTER_KEY, SECRET_KEY):
        assert not any(secret.encode() in text for text in said), secret
    own = [
        line.split('"')[1]
        for line in one_store.credentials.splitlines()
        if not line.startswith(("access_key", "role_id"))
    ]
    for secret in own:
        assert not any(secret in text for text in (one.log, other.log))


def test_gateways_ask_the_store_twice_a_second(make_server, own_store, tmp_path):
    """Whatever is asked of them with keys that they know: a bucket for a listing, OpenBao for one as well."""
    one, _ = gateways(make_server, own_store, tmp_path)
    client = asker(one, new_user(one, "ann"))
    wait_for(client, "AccessDenied")
    count = own_store.count_requests()
    wait_for(client, "AccessDenied", 20)
    time.sleep(1)
    before, began, sent = count(), time.monotonic(), 0
    while time.monotonic() - began < 3:
        client.get("/")
        sent += 1
    seconds = time.monotonic() - began
    asked = (count() - before) / seconds
    print(
        f"{own_store.kind}: {asked:.1f} requests a second of two gateways, one of which got {sent / seconds:.0f}"
    )
    assert 2 < asked <= 6 < sent / seconds


@pytest.mark.parametrize("how", ["stopped", "hanging"])
def test_while_the_store_is_away_only_root_is_served(make_server, own_store, tmp_path, how):
    one, other = gateways(make_server, own_store, tmp_path)
    key = new_user(one, "ann")
    clients = [asker(server, key) for server in (one, other)]
    for client in clients:
        wait_for(client, "AccessDenied")
    began = time.monotonic()
    if how == "stopped":
        own_store.stop()
    else:
        os.kill(own_store.pid, signal.SIGSTOP)
    try:
        for client in clients:
            # A look that hangs is waited for 5 s.
            wait_for(client, "ServiceUnavailable", 20)
        print(f"{own_store.kind} {how}: refused {time.monotonic() - began:.1f} s after")
        for server in (one, other):
            assert server.raw.get("/").status == 200
            assert (
                code_of(identities.client(server, "iam").create_user, UserName="bob") == "ServiceUnavailable"
            )
            poll(lambda server=server: "requests with other keys than root's are refused" in server.log, 20)
    finally:
        if how == "stopped":
            own_store.start()
        else:
            os.kill(own_store.pid, signal.SIGCONT)
    for server, client in zip((one, other), clients, strict=True):
        wait_for(client, "AccessDenied", 20)
        poll(lambda server=server: "identities can be read again" in server.log, 20)
    new_key(other, "ann")


def test_a_start_says_what_is_wrong(make_server, own_store, tmp_path):
    """Nothing is served by a gateway whose store cannot be used; and secrets are in no message."""
    options = [*options_of(own_store, tmp_path, own_store.wrong_credentials), "--account-id", ACCOUNT]
    with pytest.raises(StartFailed) as failed:
        make_server(*options, env=ENV)
    assert own_store.refusal in str(failed.value), failed.value
    assert "wrong-secret" not in str(failed.value) and "s.of-nobody" not in str(failed.value)
    own_store.stop()
    with pytest.raises(StartFailed) as failed:
        make_server(*options_of(own_store, tmp_path), env=ENV)
    assert "no connection" in str(failed.value), failed.value


def test_credentials_that_were_replaced_are_read_again(make_server, own_store, tmp_path):
    """Without a reload, when the store refuses the former ones."""
    [one, _] = gateways(make_server, own_store, tmp_path)
    key = new_user(one, "ann")
    client = asker(one, key)
    if own_store.kind == "bucket":
        other = {"SLIPWAY_ROOT_ACCESS_KEY": "AKIDOFTHESTORE111111", "SLIPWAY_ROOT_SECRET_KEY": "x" * 40}
        own_store.stop()
        own_store.start(env=other)
        text = f'access_key = "{other["SLIPWAY_ROOT_ACCESS_KEY"]}"\nsecret_key = "{"x" * 40}"\n'
    else:
        for accessor in own_store.call("GET", "auth/token/accessors?list=true")["data"]["keys"]:
            about = own_store.call("POST", "auth/token/lookup-accessor", {"accessor": accessor})["data"]
            if about["path"] == "auth/approle/login":
                own_store.call("POST", "auth/token/revoke-accessor", {"accessor": accessor})
        own_store.call(
            "POST", "auth/approle/role/gateway/secret-id/destroy", {"secret_id": own_store.secret_id}
        )
        own_store.role(token_ttl="1h")
        text = own_store.credentials
    wait_for(client, "ServiceUnavailable", 20)
    options_of(own_store, tmp_path, text)
    wait_for(client, "AccessDenied", 90)


def test_a_store_is_trusted_by_its_certificate(make_server, tmp_path):
    certificate, key = make_certificate(tmp_path, "store", "localhost")
    tree = tmp_path / "of-the-store"
    (tree / "ids").mkdir(parents=True)
    store = make_server("--tls-cert", str(certificate), "--tls-key", str(key), tree=tree, env=stores.OWN)
    file = tmp_path / "keys.toml"
    file.write_text(stores.BucketStore.credentials)
    file.chmod(0o600)
    place = f"s3:https://localhost:{store.address[1]}/ids"
    options = ["--identities", place, "--identities-credentials-file", str(file)]
    with pytest.raises(StartFailed, match="no TLS connection"):
        make_server(*options, env=ENV)
    _, other = make_certificate(tmp_path, "other", "localhost"), tmp_path / "other.crt"
    with pytest.raises(StartFailed, match="no TLS connection"):
        make_server(*options, "--identities-ca", str(other), env=ENV)
    server = make_server(*options, "--identities-ca", str(certificate), env=ENV)
    check_known(asker(server, new_user(server, "ann")))
    assert (tree / "ids" / f"account-{server.account}.json").exists()


def test_tools_read_the_store(make_server, one_store, tmp_path):
    """`policy explain --tree` and `master-key rotate`, with the options of the server."""
    one, _ = gateways(make_server, one_store, tmp_path)
    name = f"tool-{one_store.kind}"
    key = new_user(one, name, allow("s3:GetObject"))
    identities.client(one, "s3").create_bucket(Bucket="lab")
    options = options_of(one_store, tmp_path)
    tool = [
        binary(),
        "policy",
        "explain",
        "s3:GetObject",
        "arn:aws:s3:::lab/x",
        "--tree",
        one.tree,
        "--user",
        name,
    ]
    done = subprocess.run([*tool, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "allow" in done.stdout.lower(), done
    without = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert without.returncode == 2 and f"with --identities {one_store.url}" in without.stderr, without
    env = {"SLIPWAY_MASTER_KEY": MASTER_KEY}
    done = subprocess.run(
        [binary(), "master-key", "rotate", one.tree, "--yes", *options],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    says = f"{one.tree} (--identities {one_store.url}): secrets encrypted anew: "
    assert done.returncode == 0 and done.stdout.startswith(says), done
    wait_for(asker(one, key), "AccessDenied")
    # Another place of the same store has nothing in it.
    options[1] += "-other"
    done = subprocess.run(
        [binary(), "master-key", "rotate", one.tree, "--yes", *options],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert done.returncode == 2 and f"--identities {options[1]} has no users" in done.stderr, done


def test_users_of_a_directory_go_to_a_store_by_a_copy(make_server, tmp_path):
    """A start says that those in the directory are not used."""
    alone = make_server("--account-id", ACCOUNT, env=ENV)
    key = new_user(alone, "ann", allow("s3:ListAllMyBuckets"))
    alone.stop()
    store = stores.BucketStore(tmp_path / "store")
    target = tmp_path / "store" / "tree" / "ids" / stores.FOLDER
    target.mkdir(parents=True)
    for path in (alone.tree / ".slipway" / "iam").glob("*.json"):
        (target / path.name).write_bytes(path.read_bytes())
    server = make_server(*options_of(store, tmp_path), env=ENV)
    assert identities.client(server, "s3", key).list_buckets()["Buckets"] == []
    assert "are not used, since --identities names another store" in server.log
    identities.client(server, "iam").create_user(UserName="bob")
    store.stop()


def test_a_gateway_that_only_reads(make_server, one_store, tmp_path):
    one, _ = gateways(make_server, one_store, tmp_path)
    key = new_user(one, f"reads-{one_store.kind}")
    options = [*options_of(one_store, tmp_path), "--account-id", ACCOUNT, "--read-only"]
    reader = make_server(*options, tree=one.tree, env=ENV)
    wait_for(asker(reader, key), "AccessDenied")
    assert code_of(identities.client(reader, "iam").create_user, UserName="no") == "UnmodifiableEntity"


@pytest.fixture
def vault(tmp_path):
    store = stores.make("vault", tmp_path / "store")
    yield store
    store.stop()


def test_tokens_of_vault_are_renewed_and_got_anew(make_server, vault, tmp_path):
    """Tokens of 3 s, which cannot be renewed beyond 8: the key works all the time."""
    vault.role(token_ttl="3s", token_max_ttl="8s")
    [one, _] = gateways(make_server, vault, tmp_path)
    key = new_user(one, "ann")
    client, began = asker(one, key), time.monotonic()
    while time.monotonic() - began < 20:
        answer = client.get("/")
        assert answer.code == "AccessDenied", (answer, time.monotonic() - began, one.log)
        time.sleep(0.05)


def test_a_token_and_its_file(make_server, vault, tmp_path):
    made = vault.call("POST", "auth/token/create", {"policies": ["slipway"], "ttl": "1h"})["auth"][
        "client_token"
    ]
    sink = tmp_path / "sink"
    sink.write_text(made + "\n")
    sink.chmod(0o600)
    for text in (f'token = "{made}"\n', f'token_file = "{sink}"\n'):
        server = make_server(*options_of(vault, tmp_path, text), "--account-id", ACCOUNT, env=ENV)
        assert identities.client(server, "iam").list_users()["Users"] == []
        assert made not in server.log
        server.stop()


def test_a_service_account_of_kubernetes(make_server, vault, tmp_path):
    """Vault asks Kubernetes' API, of which there is a stand-in here, whose the token is."""
    account = {"namespace": "lab", "serviceaccount": {"name": "slipway", "uid": "1"}}
    claims = {"iss": "kubernetes", "sub": "system:serviceaccount:lab:slipway", "kubernetes.io": account}
    times = {"iat": int(time.time()), "nbf": int(time.time()) - 1, "exp": int(time.time()) + 600}
    jwt = openid.Key("one").token({**claims, **times, "aud": ["vault"]})
    reviews = stores.TokenReviews(jwt)
    vault.call("POST", "sys/auth/kube", {"type": "kubernetes"})
    certificate = make_certificate(tmp_path, "kubernetes", "kubernetes.test")[0].read_text()
    config = {"kubernetes_host": reviews.url, "kubernetes_ca_cert": certificate, "disable_local_ca_jwt": True}
    vault.call("POST", "auth/kube/config", config)
    role = {
        "bound_service_account_names": "slipway",
        "bound_service_account_namespaces": "lab",
        "token_policies": "slipway",
        "token_ttl": "1h",
    }
    vault.call("POST", "auth/kube/role/gateway", role)
    file = tmp_path / "jwt"
    file.write_text(jwt)
    text = f'kubernetes_role = "gateway"\nauth_mount = "kube"\njwt_file = "{file}"\n'
    server = make_server(*options_of(vault, tmp_path, text), "--account-id", ACCOUNT, env=ENV)
    assert identities.client(server, "iam").list_users()["Users"] == []
    assert reviews.asked == ["/apis/authentication.k8s.io/v1/tokenreviews"]
    assert jwt not in server.log
    server.stop()
    file.write_text(openid.Key("other").token({**claims, **times, "aud": ["vault"]}))
    with pytest.raises(StartFailed, match="permission denied"):
        make_server(*options_of(vault, tmp_path, text), "--account-id", ACCOUNT, env=ENV)
    reviews.close()


def test_a_policy_of_vault_that_does_not_allow(make_server, vault, tmp_path):
    """Without detailed metadata, each secret is asked for; without writing, changes are refused, and requests are not."""
    all_kinds = f'path "kv/+/{stores.FOLDER}/*" {{ capabilities = [%s] }}\n'
    names_only = 'path "kv/detailed-metadata/*" { capabilities = ["deny"] }\n'
    rules = all_kinds % '"list", "read", "create", "update"' + names_only
    vault.call("PUT", "sys/policies/acl/slipway", {"policy": rules})
    [one, _] = gateways(make_server, vault, tmp_path)
    key = new_user(one, "ann")
    vault.call("PUT", "sys/policies/acl/slipway", {"policy": all_kinds % '"list", "read"'})
    assert code_of(identities.client(one, "iam").create_user, UserName="bob") == "ServiceUnavailable"
    wait_for(asker(one, key), "AccessDenied")


def test_an_account_that_is_too_large_for_vault(make_server, vault, tmp_path):
    """1 MiB: what is too much is refused by name, and all else goes on."""
    [one, _] = gateways(make_server, vault, tmp_path)
    iam = identities.client(one, "iam")
    document = identities.policy(
        *[allow("s3:GetObject", f"arn:aws:s3:::{'b' * 50}-{n}/*") for n in range(40)]
    )
    code = None
    for number in range(250):
        code = None
        try:
            iam.create_policy(PolicyName=f"p{number}", PolicyDocument=document)
        except iam.exceptions.LimitExceededException as error:
            code = error.response["Error"]
            break
    assert code and "takes no larger document" in code["Message"], (code, number)
    assert number > 100
    iam.delete_policy(PolicyArn=f"arn:aws:iam::{ACCOUNT}:policy/p0")
    iam.create_user(UserName="ann")


def test_a_namespace(make_server, vault, tmp_path):
    try:
        vault.call("POST", "sys/namespaces/team")
    except stores.VaultError as error:
        pytest.skip(f"this server has no namespaces: {error}")
    vault.call("POST", "team/sys/mounts/kv", {"type": "kv", "options": {"version": "2"}})
    time.sleep(1)
    token = vault.root
    options = options_of(vault, tmp_path, f'token = "{token}"\n')
    options[1] += "?namespace=team"
    server = make_server(*options, "--account-id", ACCOUNT, env=ENV)
    identities.client(server, "iam").create_user(UserName="ann")
    names = vault.call("GET", f"team/kv/metadata/{stores.FOLDER}?list=true")["data"]["keys"]
    assert f"account-{ACCOUNT}" in names
