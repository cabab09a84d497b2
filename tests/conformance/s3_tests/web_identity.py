"""A pytest plugin that gives ceph/s3-tests an OpenID provider where Ceph has a Keycloak, and two tokens of it.

It is npm's `oidc-provider` (support/openid.py) below the path of a realm, and is there as long as the tests run. The
section `webidentity` of the suite's configuration says what the tests need of it. The token of the user has one tag:
the suite's own has two values of one key, and a session tag has one value ("Passing session tags in AWS STS", IAM User
Guide).

AWS takes tokens for the client ids of a provider alone, Ceph takes all if there are none. The suite's providers get the
client id here where a test gives none.
"""

import configparser
import os
from pathlib import Path

from s3tests import functional

from support.openid import Idp, Key, claims_of, installed

PORT = "SLIPWAY_CONFORMANCE_OPENID_PORT"
REALM = "slipway"
CLIENT = "s3-tests"
# Tokens are made once, before the first test.
SECONDS = 6 * 3600
TAGS = {"https://aws.amazon.com/tags": {"principal_tags": {"Department": ["Engineering"]}}}

_get_iam_client = functional.get_iam_client


def _fill_client_ids(params, **_):
    if "/realms/" in params["Url"] and not params.get("ClientIDList"):
        params["ClientIDList"] = [CLIENT]


def _get_filling_client(**arguments):
    client = _get_iam_client(**arguments)
    client.meta.events.register("before-parameter-build.iam.CreateOpenIDConnectProvider", _fill_client_ids)
    return client


functional.get_iam_client = _get_filling_client


def pytest_configure(config):
    if PORT not in os.environ:
        return
    program = installed()
    if program is None:
        print("no OpenID provider: there is no node, no npm, or no registry")
        return
    path = Path(os.environ["S3TEST_CONF"])
    idp = Idp(path.parent, program, port=int(os.environ[PORT]), path=f"/auth/realms/{REALM}")
    config.add_cleanup(idp.stop)
    key = Key("s3-tests")
    tokens = []
    for tags in (TAGS, {}):
        idp.stop()
        idp.start(key, clients=[CLIENT], seconds=SECONDS, claims={"azp": CLIENT, **tags})
        tokens.append(idp.log_in("tester", CLIENT))
    user_token, token = tokens
    conf = configparser.RawConfigParser()
    conf.read(path)
    claims = claims_of(token)
    conf["webidentity"] = {
        "token": token,
        "user_token": user_token,
        "aud": claims["aud"],
        "sub": claims["sub"],
        "azp": claims["azp"],
        "thumbprint": "a" * 40,
        "KC_REALM": REALM,
    }
    with path.open("w") as file:
        conf.write(file)
