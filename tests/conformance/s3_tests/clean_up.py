"""A pytest plugin that lets ceph/s3-tests remove what it made where S3 and IAM answer as Amazon does.

The suite empties each bucket with `x-amz-bypass-governance-retention`. Amazon S3 takes that header in buckets with
Object Lock alone, and was recorded to answer 400 InvalidArgument in others (and has deleted nothing then). A bucket that
answers so is emptied without the header.
ListBuckets also shows buckets of other accounts if their policy allows to list them (decision 0073), and S3 only the
requester's own. Each client of the suite removes what it is shown; here it leaves what another account has.
IAM deletes no user who is in a group. The suite deletes users before groups; here a user leaves its groups first.
The tests themselves are left as they are.
"""

from botocore.exceptions import ClientError
from s3tests import functional
from s3tests.functional import iam

_nuke_bucket = functional.nuke_bucket
_nuke_user = iam.nuke_user


class _Client:
    """A boto3 client that asks again without the bypass where there is nothing to bypass."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def delete_objects(self, *, BypassGovernanceRetention, **arguments):
        try:
            return self._client.delete_objects(
                **arguments, BypassGovernanceRetention=BypassGovernanceRetention
            )
        except ClientError as error:
            if error.response["Error"].get("ArgumentName") != "x-amz-bypass-governance-retention":
                raise
            return self._client.delete_objects(**arguments)


def _nuke(client, bucket):
    try:
        _nuke_bucket(_Client(client), bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] != "AccessDenied" or _is_own(client, bucket):
            raise


def _is_own(client, bucket):
    """Whether the bucket belongs to the client's account: only its own users may ask for that."""
    try:
        client.get_bucket_acl(Bucket=bucket)
    except ClientError as error:
        return error.response["Error"]["Code"] != "AccessDenied"
    return True


functional.nuke_bucket = _nuke


def _nuke_member(client, name):
    for group in client.list_groups_for_user(UserName=name)["Groups"]:
        client.remove_user_from_group(GroupName=group["GroupName"], UserName=name)
    _nuke_user(client, name)


iam.nuke_user = _nuke_member
