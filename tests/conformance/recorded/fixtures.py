"""The fixtures that the suite's tests ask for. A test that asks for another one is skipped, and says so."""

import os

import boto3
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.config import Config
from botocore.credentials import Credentials
from localstack.testing.snapshots.transformer_utility import (
    SNAPSHOT_BASIC_TRANSFORMER,
    SNAPSHOT_BASIC_TRANSFORMER_NEW,
    TransformerUtility,
)
from localstack.utils.aws.client import SigningHttpClient
from localstack_snapshot.snapshots import SnapshotSession
from localstack_snapshot.snapshots.transformer import RegexTransformer

from . import server
from .trace import TRACE


class Clients:
    """Clients by service: `clients.s3`."""

    def __init__(self, **options) -> None:
        self._options, self._made = options, {}

    def __getattr__(self, service: str):
        if service.startswith("__"):
            raise AttributeError(service)
        if service not in self._made:
            self._made[service] = server.client(service.rstrip("_"), **self._options)
        return self._made[service]


class ClientFactory:
    """Makes clients with other options."""

    def __call__(self, **options) -> Clients:
        return Clients(**options)

    def get_client(self, service_name: str, **options):
        """One client."""
        return server.client(service_name, **options)


@pytest.fixture(scope="session")
def aws_session():
    return boto3.Session(server.ACCESS_KEY, server.SECRET_KEY, region_name=server.REGION)


@pytest.fixture(scope="session")
def aws_client_factory():
    return ClientFactory()


@pytest.fixture(scope="session")
def aws_client():
    return Clients()


@pytest.fixture(scope="session")
def aws_client_no_retry():
    return Clients(config=Config(retries={"max_attempts": 1}))


@pytest.fixture(scope="session")
def account_id():
    return server.ACCOUNT


@pytest.fixture(scope="session")
def secondary_account_id():
    """An account that is not the server's; nobody signs for it."""
    return "730184625913"


@pytest.fixture(scope="session")
def region_name():
    return server.REGION


@pytest.fixture(scope="session")
def partition():
    return "aws"


@pytest.fixture
def s3_vhost_client():
    return server.client(config=Config(s3={"addressing_style": "virtual"}))


@pytest.fixture
def aws_http_client_factory():
    def make(
        service, region=None, signer_factory=SigV4QueryAuth, endpoint_url=None, aws_access_key_id=None,
        aws_secret_access_key=None,
    ):  # fmt: skip
        keys = Credentials(aws_access_key_id or server.ACCESS_KEY, aws_secret_access_key or server.SECRET_KEY)
        signer = signer_factory(keys, service, region or server.REGION)
        return SigningHttpClient(signer, endpoint_url=endpoint_url or server.ENDPOINT)

    return make


@pytest.fixture
def s3_empty_bucket(pytestconfig):
    return pytestconfig.janitor.empty


def _name() -> str:
    return f"test-bucket-{os.urandom(4).hex()}"


@pytest.fixture
def s3_create_bucket(aws_client):
    def make(**options):
        options.setdefault("Bucket", _name())
        aws_client.s3.create_bucket(**options)
        return options["Bucket"]

    return make


@pytest.fixture
def s3_create_bucket_with_client():
    def make(s3_client, **options):
        return s3_client.create_bucket(**{"Bucket": _name(), **options})

    return make


@pytest.fixture
def s3_bucket(s3_create_bucket):
    return s3_create_bucket()


# What tests of identities make. Their names are random, and the server is gone after the run.


@pytest.fixture
def create_user(aws_client):
    def make(**options):
        return aws_client.iam.create_user(**{"UserName": f"user-{os.urandom(4).hex()}", **options})

    return make


@pytest.fixture
def create_policy(aws_client):
    def make(iam_client=None, **options):
        options.setdefault("PolicyName", f"policy-{os.urandom(4).hex()}")
        return (iam_client or aws_client.iam).create_policy(**options)

    return make


@pytest.fixture
def create_role(aws_client):
    def make(iam_client=None, **options):
        options.setdefault("RoleName", f"role-{os.urandom(4).hex()}")
        return (iam_client or aws_client.iam).create_role(**options)

    return make


@pytest.fixture
def wait_and_assume_role(aws_client):
    def assume(role_arn, session_name="session", **options):
        answer = aws_client.sts.assume_role(RoleArn=role_arn, RoleSessionName=session_name, **options)
        return answer["Credentials"]

    return assume


@pytest.fixture
def cleanups():
    return []


class Recording(SnapshotSession):
    """What was recorded of a test, and what the server answers in it. `operations` has the operation
    of each step."""

    def __init__(self, request) -> None:
        path = os.path.join(request.path.parent, request.path.stem)
        super().__init__(base_file_path=path, scope_key=request.node.nodeid, verify=True)
        self.operations: dict[str, str] = {}
        self.transform = TransformerUtility
        for pattern, name in (
            (server.ACCOUNT, "1" * 12),
            (server.REGION, "<region>"),
            ("arn:aws:", "arn:<partition>:"),
        ):
            self.add_transformer(RegexTransformer(pattern, name), priority=2)
        # Times have another placeholder in the recordings of S3.
        is_s3 = request.path.parent.name == "s3"
        basic = SNAPSHOT_BASIC_TRANSFORMER if is_s3 else SNAPSHOT_BASIC_TRANSFORMER_NEW
        self.add_transformer(basic, priority=2)

    def match(self, key, obj):
        self.operations[key] = TRACE.operation_of(obj)
        return super().match(key, obj)

    def answered(self) -> dict:
        """What was answered, in the form of the recording: with placeholders for random names."""
        self.skip_verification_paths = []
        return self._transform(self.observed_state)


@pytest.fixture
def snapshot(request):
    request.node.recording = Recording(request)
    return request.node.recording
