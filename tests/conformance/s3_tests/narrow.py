"""A pytest plugin that leaves `s3 alt` without a policy of its own in tests of ceph/s3-tests that allow it something.

The suite's users are Ceph's older ones, who may use what they own. Those of IAM may do nothing unless a policy allows
it, so the runner makes `s3 alt` an administrator of its account (xtask/src/conformance/identities.rs). In that role a
test that allows it something would pass whatever the test's policy says.
"""

import pytest
from s3tests import functional

ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    if (
        pyfuncitem.module.__name__.rpartition(".")[2] not in ("test_iam", "test_sts")
        or "allow" not in pyfuncitem.name
    ):
        return (yield)
    client, alt = functional.get_iam_client(), functional.get_alt_user_id()
    client.detach_user_policy(UserName=alt, PolicyArn=ADMINISTRATOR)
    try:
        return (yield)
    finally:
        client.attach_user_policy(UserName=alt, PolicyArn=ADMINISTRATOR)
