"""A fault at every system call of every kind of write, and of the tools that write."""

import pytest

from support.faultlayer import is_supported
from support.server import REPOSITORY

from .campaign import EVERY_FAULT, IO_ERROR, KILLED, Campaign
from .cases import CASES, TOOL_CASES, ToolCase
from .tools import ToolCampaign

pytestmark = pytest.mark.skipif(not is_supported(), reason="the filter knows the call numbers of x86-64 only")


@pytest.mark.parametrize("case", [*CASES, *TOOL_CASES], ids=lambda case: case.name)
def test_every_fault(case, tmp_path, request):
    everything = request.config.getoption("--faults")
    if not everything and not case.sample:
        pytest.skip("not in the sample; ./test --faults runs it")
    campaign = (ToolCampaign if isinstance(case, ToolCase) else Campaign)(case, tmp_path)
    try:
        for fault in EVERY_FAULT if everything else (KILLED, IO_ERROR):
            campaign.run(fault, step=1 if everything else case.sample)
    finally:
        campaign.report.write(REPOSITORY / "target" / "faults")
        campaign.close()
    assert not campaign.report.findings, "\n" + "\n".join(map(str, campaign.report.findings))
