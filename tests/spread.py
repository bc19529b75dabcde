"""A plugin for tests in several processes: servers of its own for each, and whole files to each, the longest first.

`./mq test` names it in PYTEST_PLUGINS, because Django's settings are read before any conftest. It starts the servers
and lists them in MQ_SERVERS_OF_TESTS; pytest-xdist counts its processes gw0, gw1, ….
"""

import json
import os
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

# The files and folders whose tests take longest, by the CPU of all their processes: begun first, so that none
# of them is what all others are waited for at the end.
LONGEST = (
    "tests/analytics/",
    "tests/cli/test_up.py",
    "tests/chaos/test_mutants.py",
    "tests/chaos/test_storm.py",
    "tests/console/test_console_hostile.py",
    "tests/chaos/test_transfers.py",
    "tests/client/test_readme.py",
    "tests/client/test_exactly_once_killed.py",
    "tests/barrier/test_barrier_accidents.py",
    "tests/webhooks/test_sealed_secrets.py",
    "tests/cli/test_script.py",
    "tests/actions/test_actions_browser.py",
    "tests/delivery/test_crowd.py",
)
# The tests of these folders stay in one process: what they share takes long to start.
WHOLE_FOLDERS = ("tests/analytics/",)

if "PYTEST_XDIST_WORKER" in os.environ:
    _servers = json.loads(os.environ["MQ_SERVERS_OF_TESTS"])
    # A process that takes the place of a crashed one has a number of its own.
    os.environ.update(_servers[int(os.environ.pop("PYTEST_XDIST_WORKER").removeprefix("gw")) % len(_servers)])
    # A pytest that a test starts is none of these processes.
    os.environ["PYTEST_PLUGINS"] = os.environ["PYTEST_PLUGINS"].removesuffix(__name__).rstrip(",")


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """Gives each process whole files of tests, or whole folders."""

    def _assign_work_unit(self, node: Any) -> None:
        first = min(self.workqueue, key=lambda scope: LONGEST.index(scope) if scope in LONGEST else len(LONGEST))
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((folder for folder in WHOLE_FOLDERS if file.startswith(folder)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)
