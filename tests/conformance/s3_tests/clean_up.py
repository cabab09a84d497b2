"""A pytest plugin that lets ceph/s3-tests remove its buckets where S3 answers as Amazon does.

The suite empties each bucket with `x-amz-bypass-governance-retention`. Amazon S3 takes that header in buckets with
Object Lock alone, and was recorded to answer 400 InvalidArgument in others (and has deleted nothing then). A bucket that
answers so is emptied without the header. The tests themselves are left as they are.
"""

from botocore.exceptions import ClientError
from s3tests import functional

_nuke_bucket = functional.nuke_bucket


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
    _nuke_bucket(_Client(client), bucket)


functional.nuke_bucket = _nuke
