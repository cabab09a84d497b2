"""A fault at every system call of every kind of write, and of the tools that write; with `--impersonate`, of the writes
of a server that acts as its requester."""

import os
from collections.abc import Iterable

import pytest

from support.faultlayer import is_supported
from support.server import REPOSITORY, SIDECARS

from .campaign import EVERY_FAULT, IO_ERROR, KILLED, Campaign, Fault
from .cases import CASES, TOOL_CASES, ToolCase
from .tools import ToolCampaign

pytestmark = pytest.mark.skipif(not is_supported(), reason="the filter knows the call numbers of x86-64 only")

USER = (12100, 12100)
CONVERSION = "a file that becomes a directory is refused (501)"
DELETED = (
    "a Complete that a crash interrupted is known to be done by its object alone, which was deleted since"
)
# What is not so with --impersonate, as decisions 0044 and 0070 say.
NOT_WITH_IMPERSONATE = {
    "file-becomes-directory": CONVERSION,
    "overwrite-file-in-directory": CONVERSION,
    "complete-once": DELETED,
    "complete-copied-once": DELETED,
}
# Of the sample, those whose files or directories get their owners in another way.
AS_A_USER = ("create-bucket", "overwrite")


@pytest.mark.parametrize("case", [*CASES, *TOOL_CASES], ids=lambda case: case.name)
def test_every_fault(case, tmp_path, request):
    everything = request.config.getoption("--faults")
    if not everything and not case.sample:
        pytest.skip("not in the sample; ./test --faults runs it")
    user = None
    if request.config.getoption("--impersonate"):
        if os.geteuid() != 0:
            pytest.skip("only root may act as other users")
        if why := NOT_WITH_IMPERSONATE.get(case.name) or (
            "as the gateway alone"
            if isinstance(case, ToolCase)
            else case.keeps_versions and "versions are refused (501)"
        ):
            pytest.skip(f"{why}")
        user = USER
    tool = isinstance(case, ToolCase)
    campaign = ToolCampaign(case, tmp_path) if tool else Campaign(case, tmp_path, user)
    run(campaign, EVERY_FAULT if everything else (KILLED, IO_ERROR), 1 if everything else case.sample)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as other users")
@pytest.mark.skipif(SIDECARS, reason="--impersonate is refused where records are in files")
@pytest.mark.parametrize("name", AS_A_USER)
def test_faults_as_a_user(name, tmp_path, request):
    if request.config.getoption("--impersonate"):
        pytest.skip("so are all others")
    case = next(case for case in CASES if case.name == name)
    run(Campaign(case, tmp_path, USER), (KILLED, IO_ERROR), 1)


def run(campaign: Campaign | ToolCampaign, faults: Iterable[Fault], step: int) -> None:
    try:
        for fault in faults:
            campaign.run(fault, step=step)
    finally:
        campaign.report.write(REPOSITORY / "target" / "faults")
        campaign.close()
    assert not campaign.report.findings, "\n" + "\n".join(map(str, campaign.report.findings))
