"""A plugin for pytest that writes down which faults each test reaches: `-p seeded_faults.reached`, in one process."""

import json
import os
import time
from pathlib import Path

import pytest

from .control import Control


class Reached:
    def __init__(self, control: Control, out: Path) -> None:
        self.control, self.out, self.passed = control, out, True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        self.control.forget()
        self.passed, begun = True, time.monotonic()
        result = yield
        entry = {
            "test": item.nodeid,
            "passed": self.passed,
            "seconds": round(time.monotonic() - begun, 3),
            "reached": self.control.reached(),
        }
        with open(self.out, "a") as file:
            file.write(json.dumps(entry) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed = self.passed and not report.failed


def pytest_configure(config: pytest.Config) -> None:
    control, out = Path(os.environ["SEEDED_FAULT_CONTROL"]), Path(os.environ["SEEDED_FAULT_REACHED"])
    config.pluginmanager.register(Reached(Control(control), out))
