"""OpenID providers as IAM has them: their client ids, thumbprints and tags, and rights on them."""

import pytest

from support.identities import allow, client, code_of, deny, error_of, master_key, new_user

THUMBPRINT = "a" * 40


@pytest.fixture
def server(make_server, tmp_path):
    return make_server("--durability", "none", "--master-key-file", str(master_key(tmp_path)))


@pytest.fixture
def iam(server):
    return client(server, "iam")


@pytest.fixture
def account(server) -> str:
    return client(server, "sts").get_caller_identity()["Account"]


class TestProviders:
    def test_a_life(self, iam, account):
        made = iam.create_open_id_connect_provider(
            Url="https://idp.lab/realms/a",
            ClientIDList=["one", "two", "one"],
            ThumbprintList=[THUMBPRINT],
            Tags=[{"Key": "team", "Value": "a"}],
        )
        arn = made["OpenIDConnectProviderArn"]
        assert arn == f"arn:aws:iam::{account}:oidc-provider/idp.lab/realms/a"
        assert made["Tags"] == [{"Key": "team", "Value": "a"}]
        listed = iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]
        assert listed == [{"Arn": arn}]
        of = {"OpenIDConnectProviderArn": arn}
        iam.add_client_id_to_open_id_connect_provider(**of, ClientID="three")
        iam.add_client_id_to_open_id_connect_provider(**of, ClientID="three")
        iam.remove_client_id_from_open_id_connect_provider(**of, ClientID="one")
        iam.remove_client_id_from_open_id_connect_provider(**of, ClientID="none")
        iam.update_open_id_connect_provider_thumbprint(**of, ThumbprintList=["b" * 40])
        iam.tag_open_id_connect_provider(
            **of, Tags=[{"Key": "Team", "Value": "b"}, {"Key": "x", "Value": ""}]
        )
        iam.untag_open_id_connect_provider(**of, TagKeys=["team", "none"])
        shown = iam.get_open_id_connect_provider(**of)
        assert shown["Url"] == "idp.lab/realms/a"
        assert shown["ClientIDList"] == ["two", "three"]
        assert shown["ThumbprintList"] == ["b" * 40]
        tags = [{"Key": "Team", "Value": "b"}, {"Key": "x", "Value": ""}]
        assert shown["Tags"] == tags
        page = iam.list_open_id_connect_provider_tags(**of, MaxItems=1)
        assert (page["Tags"], page["IsTruncated"]) == (tags[:1], True)
        page = iam.list_open_id_connect_provider_tags(**of, Marker=page["Marker"])
        assert (page["Tags"], page["IsTruncated"]) == (tags[1:], False)
        iam.delete_open_id_connect_provider(**of)
        assert iam.list_open_id_connect_providers()["OpenIDConnectProviderList"] == []

    def test_what_is_refused(self, iam, account):
        create = iam.create_open_id_connect_provider
        for url in ("http://idp.lab", "idp.lab/realms", "https://idp.lab?a=b", "https://user@idp.lab"):
            assert error_of(create, Url=url) == (
                "ValidationError",
                400,
                "Invalid Open ID Connect Provider URL",
            )
        arn = create(Url="http://localhost:8080/a")["OpenIDConnectProviderArn"]
        assert code_of(create, Url="https://localhost:8080/a") == "EntityAlreadyExists"
        of = {"OpenIDConnectProviderArn": arn.replace("/a", "/b")}
        for name in (
            "get_open_id_connect_provider",
            "delete_open_id_connect_provider",
            "list_open_id_connect_provider_tags",
        ):
            call = getattr(iam, name)
            assert code_of(call, **of) == "NoSuchEntity"
            other = arn.replace(account, "000000000000")
            assert code_of(call, OpenIDConnectProviderArn=other) == "NoSuchEntity"
            role = f"arn:aws:iam::{account}:role/idp.lab"
            assert code_of(call, OpenIDConnectProviderArn=role) == "ValidationError"

    def test_rights_by_arn_and_tags(self, server, iam, account):
        """Policies name providers by ARN and by tag, those of the request among them."""
        arns = f"arn:aws:iam::{account}:oidc-provider/"
        tagged = {"StringEquals": {"aws:RequestTag/team": "a"}}
        key = new_user(
            server,
            "ann",
            allow("iam:CreateOpenIDConnectProvider", arns + "idp.lab/*", Condition=tagged),
            allow("iam:*OpenIDConnectProvider*", arns + "*"),
            deny("iam:CreateOpenIDConnectProvider", Condition={"Null": {"aws:RequestTag/team": "true"}}),
            deny(
                "iam:DeleteOpenIDConnectProvider", Condition={"StringEquals": {"aws:ResourceTag/team": "b"}}
            ),
        )
        own = client(server, "iam", key)
        create = own.create_open_id_connect_provider
        assert code_of(create, Url="https://idp.lab/a") == "AccessDenied"
        arn = create(Url="https://idp.lab/a", Tags=[{"Key": "team", "Value": "a"}])[
            "OpenIDConnectProviderArn"
        ]
        own.tag_open_id_connect_provider(OpenIDConnectProviderArn=arn, Tags=[{"Key": "team", "Value": "b"}])
        assert code_of(own.delete_open_id_connect_provider, OpenIDConnectProviderArn=arn) == "AccessDenied"
        own.untag_open_id_connect_provider(OpenIDConnectProviderArn=arn, TagKeys=["team"])
        own.delete_open_id_connect_provider(OpenIDConnectProviderArn=arn)
        bob = new_user(server, "bob", allow("iam:GetOpenIDConnectProvider", arns + "idp.lab/b"))
        arn = iam.create_open_id_connect_provider(Url="https://idp.lab/c")["OpenIDConnectProviderArn"]
        get = client(server, "iam", bob).get_open_id_connect_provider
        assert code_of(get, OpenIDConnectProviderArn=arn) == "AccessDenied"
        # Names cannot be tried out.
        assert code_of(get, OpenIDConnectProviderArn=arns + "idp.lab/d") == "AccessDenied"
        assert code_of(get, OpenIDConnectProviderArn=arns + "idp.lab/b") == "NoSuchEntity"
