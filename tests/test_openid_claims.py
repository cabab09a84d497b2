"""Claims of OpenID tokens that name roles, and accounts of the system (docs/IDENTITY.md)."""

import os

import pytest
from test_admin import done, refusal, text
from test_openid import assume, idp, new_role, one, program, provide, refused  # noqa: F401

from support.admin import Admin, facts
from support.identities import ROOT, allow, client, code_of, error_of, key_of, master_key, new_user
from support.openid import fresh_claims
from support.server import KEYS, SIDECARS
from support.wire import poll


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def iam(server):
    return client(server, "iam")


@pytest.fixture
def arn(server, iam, idp, one) -> str:  # noqa: F811
    """A provider whose claim `groups` names roles."""
    idp.start(one)
    made = provide(iam, idp)
    set_claims(server, made, RoleClaim="groups")
    return made


def set_claims(server, arn: str, **claims: str) -> None:
    done(server, "SetOpenIDConnectProviderClaims", OpenIDConnectProviderArn=arn, **claims)


def by_claim(server, token: str, **members) -> dict:
    """A session without RoleArn, as MinIO's clients ask for one."""
    sts = client(server, "sts", ("unused", "unused", None), parameter_validation=False)
    return sts.assume_role_with_web_identity(WebIdentityToken=token, **members)


class TestRoles:
    def test_only_roles_that_the_token_names(self, server, iam, idp, one, arn):  # noqa: F811
        reader, writer = (new_role(iam, name, arn) for name in ("reader", "writer"))
        for groups in (["staff", "reader"], "reader", [reader], ["READER", "no-such-role"]):
            token = one.token(fresh_claims(idp, groups=groups))
            assume(server, reader, token)
            assert refused(server, writer, token) == "AccessDenied", groups
        for groups in ([], ["staff"], "staff", [reader + "s"], ["role/reader"], None):
            token = one.token(fresh_claims(idp, groups=groups))
            assert refused(server, reader, token) == "AccessDenied", groups
        for groups in (1, {"a": "reader"}, [["reader"]], "", ["a"] * 1001):
            token = one.token(fresh_claims(idp, groups=groups))
            assert refused(server, reader, token) == "InvalidIdentityToken", groups
        # Without the claim, any that trusts the provider may be had.
        set_claims(server, arn)
        assume(server, writer, one.token(fresh_claims(idp, groups=["staff"])))

    def test_a_role_that_does_not_trust_the_provider(self, server, iam, idp, one, arn):  # noqa: F811
        new_user(server, "ann")
        trust = {"StringEquals": {f"{idp.issuer.split('//')[1]}:sub": "bob"}}
        role = new_role(iam, "bobs", arn, trust)
        token = one.token(fresh_claims(idp, groups=["bobs"]))
        assert refused(server, role, token) == "AccessDenied"
        assert code_of(by_claim, server, token) == "AccessDenied"

    def test_without_a_role_it_is_the_one_that_the_token_names(self, server, iam, idp, one, arn):  # noqa: F811
        reader, writer = (new_role(iam, name, arn) for name in ("reader", "writer"))
        token = one.token(fresh_claims(idp, groups=["staff", "reader"], sub="ann@idp lab/1"))
        answer = by_claim(server, token)
        account = reader.split(":")[4]
        session = f"arn:aws:sts::{account}:assumed-role/reader/ann@idp-lab-1"
        assert answer["AssumedRoleUser"]["Arn"] == session
        s3 = client(server, "s3", key_of(answer["Credentials"]))
        s3.list_buckets()
        answer = by_claim(server, token, RoleSessionName="mine", DurationSeconds=900)
        assert answer["AssumedRoleUser"]["Arn"].endswith("/reader/mine")
        both = one.token(fresh_claims(idp, groups=["reader", "writer"]))
        code, status, why = error_of(by_claim, server, both)
        assert (code, status) == ("InvalidParameterValue", 400) and "RoleArn" in why
        assume(server, writer, both)
        none = one.token(fresh_claims(idp, groups=["staff"]))
        assert code_of(by_claim, server, none) == "AccessDenied"
        # As before where the provider has no such claim.
        set_claims(server, arn)
        assert code_of(by_claim, server, token) == "ValidationError"

    def test_tokens_that_do_not_count_name_no_role(self, server, iam, idp, one, arn):  # noqa: F811
        new_role(iam, "reader", arn)
        for others in ({"aud": "stranger"}, {"exp": 1}, {"iss": "https://idp.lab"}):
            token = one.token(fresh_claims(idp, **{"groups": ["reader"]} | others))
            code = code_of(by_claim, server, token)
            assert code in ("InvalidIdentityToken", "ExpiredTokenException"), others
        assert code_of(by_claim, server, "nothing") == "InvalidIdentityToken"


class TestActions:
    def test_only_the_administrator_names_claims(self, server, iam, arn):
        admin = new_user(server, "ann", allow("*"))
        sent = {"OpenIDConnectProviderArn": arn}
        for action in ("SetOpenIDConnectProviderClaims", "GetOpenIDConnectProviderClaims"):
            assert refusal(server, action, admin, **sent) == ("AccessDenied", 403)
        shown = done(server, "GetOpenIDConnectProviderClaims", **sent)
        assert text(shown, "RoleClaim") == "groups" and shown.find(".//{*}PosixClaim") is None

    def test_what_is_refused(self, server, arn):
        call = "SetOpenIDConnectProviderClaims"
        gone = {"OpenIDConnectProviderArn": arn + "/other"}
        assert refusal(server, call, **gone, RoleClaim="a") == ("NoSuchEntity", 404)
        sent = {"OpenIDConnectProviderArn": arn}
        assert refusal(server, call, **sent, RoleClaim="") == ("ValidationError", 400)
        assert refusal(server, call, **sent, RoleClaim="a\nb") == ("InvalidInput", 400)

    def test_the_command(self, server, arn, tmp_path):
        root = {"AWS_ACCESS_KEY_ID": ROOT[0], "AWS_SECRET_ACCESS_KEY": ROOT[1]}
        admin = Admin(tmp_path, AWS_ENDPOINT_URL=server.endpoint, **root)
        assert [found["Arn"] for found in admin.json("provider", "list")] == [arn]
        url = arn.partition("oidc-provider/")[2]
        assert facts(admin("provider", "show", url))["claim for roles"] == "groups"
        admin("provider", "set-claims", f"http://{url}", "--role", "roles", "--posix", "login")
        shown = admin.json("provider", "show", arn)
        assert (shown["RoleClaim"], shown["PosixClaim"]) == ("roles", "login")
        admin("provider", "set-claims", url)
        assert "RoleClaim" not in admin.json("provider", "show", url)
        assert admin.refused("provider", "show", "idp.example.org").startswith("NoSuchEntity")


@pytest.mark.skipif(os.geteuid() != 0 or SIDECARS, reason="--impersonate needs root, and no records in files")
class TestAccounts:
    """`nobody` is an account of each system, with uid 65534."""

    @pytest.fixture
    def server(self, make_server, tmp_path):
        tree = tmp_path / "tree"
        tree.mkdir(mode=0o755)
        env = {**KEYS, "SLIPWAY_ROOT_UID": "12100", "SLIPWAY_ROOT_GID": "12100"}
        return make_server(
            "--impersonate", "--master-key-file", str(master_key(tmp_path)), tree=tree, env=env
        )

    @pytest.fixture
    def role(self, server, iam, idp, one) -> str:  # noqa: F811
        idp.start(one)
        arn = provide(iam, idp)
        set_claims(server, arn, PosixClaim="login")
        bucket = server.tree / "lab"
        client(server, "s3").create_bucket(Bucket="lab")
        bucket.chmod(0o777)
        return new_role(iam, "lab", arn)

    def session(self, server, role: str, token: str):
        return client(server, "s3", key_of(assume(server, role, token)["Credentials"]))

    def test_a_session_is_the_account_that_the_token_names(self, server, role, idp, one):  # noqa: F811
        s3 = self.session(server, role, one.token(fresh_claims(idp, login="nobody")))
        s3.put_object(Bucket="lab", Key="a", Body=b"1")
        assert (server.tree / "lab" / "a").stat().st_uid == 65534
        closed = server.tree / "lab" / "closed"
        closed.write_bytes(b"2")
        closed.chmod(0o600)
        assert code_of(s3.get_object, Bucket="lab", Key="closed") == "AccessDenied"

    @pytest.mark.parametrize("login", [None, "root", "daemon", "no-such-account", "a:b", "../x", "\u00e4"])
    def test_names_that_are_nobodys(self, server, role, idp, one, login):  # noqa: F811
        s3 = self.session(server, role, one.token(fresh_claims(idp, login=login)))
        assert code_of(s3.put_object, Bucket="lab", Key="a", Body=b"1") == "AccessDenied"
        assert not (server.tree / "lab" / "a").exists()

    def test_an_identity_of_the_role_goes_before_it(self, server, role, idp, one):  # noqa: F811
        done(server, "SetPosixIdentity", RoleName="lab", Identity="12101:12101")
        s3 = self.session(server, role, one.token(fresh_claims(idp, login="nobody")))
        s3.put_object(Bucket="lab", Key="a", Body=b"1")
        assert (server.tree / "lab" / "a").stat().st_uid == 12101

    def test_live_sessions_lose_it_with_the_claim(self, server, role, idp, one, iam):  # noqa: F811
        s3 = self.session(server, role, one.token(fresh_claims(idp, login="nobody")))
        s3.put_object(Bucket="lab", Key="a", Body=b"1")
        (arn,) = (found["Arn"] for found in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"])
        set_claims(server, arn)
        poll(lambda: refused_now(s3), 3)

    def test_live_sessions_lose_it_with_another_claim(self, server, role, idp, one, iam):  # noqa: F811
        s3 = self.session(server, role, one.token(fresh_claims(idp, login="nobody", name="nobody")))
        s3.put_object(Bucket="lab", Key="a", Body=b"1")
        (arn,) = (found["Arn"] for found in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"])
        set_claims(server, arn, PosixClaim="name")
        poll(lambda: refused_now(s3), 3)
        # It is given back with the claim.
        set_claims(server, arn, PosixClaim="login")
        poll(lambda: not refused_now(s3), 3)


def refused_now(s3) -> bool:
    try:
        s3.get_object(Bucket="lab", Key="a")
    except s3.exceptions.ClientError as error:
        return error.response["Error"]["Code"] == "AccessDenied"
    return False


def test_two_tags_that_differ_in_case_alone(server, iam, idp, one):  # noqa: F811
    """No condition could say which of them it means, and AssumeRole refuses them, too."""
    idp.start(one)
    actions = ["sts:AssumeRoleWithWebIdentity", "sts:TagSession"]
    right = {"StringEquals": {"aws:RequestTag/team": "a"}}
    role = new_role(iam, "reader", provide(iam, idp), right, Action=actions)
    claim = "https://aws.amazon.com/tags"
    assume(server, role, one.token(fresh_claims(idp, **{claim: {"principal_tags": {"team": "a"}}})))
    for value in ("a", "b"):
        for claims in (
            {claim: {"principal_tags": {"team": "a", "TEAM": value}}},
            {claim: {"principal_tags": {"team": "a"}}, f"{claim}/principal_tags/Team": value},
            {f"{claim}/principal_tags/team": "a", f"{claim}/principal_tags/tEAM": value},
        ):
            token = one.token(fresh_claims(idp, **claims))
            assert refused(server, role, token) == "InvalidIdentityToken", claims
