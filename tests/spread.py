"""A plugin for tests in several processes: servers of its own for each, and whole files to each, the longest first.

`./mq test` names it in PYTEST_PLUGINS, because Django's settings are read before any conftest. It starts the servers
and lists them in MQ_SERVERS_OF_TESTS; pytest-xdist counts its processes gw0, gw1, ….
"""

import gc
import json
import os
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

# The files and folders whose tests share what takes long to start, by what that is: they stay in one process. The first
# that names a file has it.
SHARING = {
    "the export of a past": (
        "tests/analytics/test_export_cluster.py",
        "tests/analytics/test_export_command.py",
        "tests/analytics/test_export_command_source.py",
        "tests/analytics/test_export_reading.py",
        "tests/analytics/test_export_tables.py",
        "tests/analytics/test_report_command.py",
    ),
    "a session of Spark": (
        "tests/analytics/test_export_among_writers.py",
        "tests/analytics/test_export_failures.py",
        "tests/analytics/test_export_increments.py",
        "tests/analytics/test_export_places.py",
        "tests/analytics/test_export_ranges.py",
        "tests/analytics/test_export_readers.py",
        "tests/analytics/test_export_remote.py",
        "tests/analytics/test_export_retention.py",
        "tests/analytics/test_export_stream.py",
        "tests/analytics/test_export_versions.py",
        "tests/analytics/test_report_deliveries.py",
        "tests/analytics/test_report_page.py",
        "tests/analytics/test_report_transactions.py",
    ),
    "an installed client": (
        "tests/client/test_frameworks.py",
        "tests/client/test_readme.py",
        "tests/client/test_wheel.py",
    ),
    "a MariaDB": (
        "tests/barrier/",
        "tests/client/test_exactly_once.py",
    ),
    "a console with every address": (
        "tests/console/test_console_hostile.py",
        "tests/console/test_console_matrix.py",
    ),
    "a console": ("tests/console/",),
    "a broker without checks": ("tests/control/",),
    "a broker that knows who may": ("tests/access/",),
    "the users of a broker's console": ("tests/actions/",),
}
# What takes longest, by the CPU of all its processes or by what it waits for: begun before its like, so that none of it
# is what all others are waited for at the end.
LONGEST = (
    "the export of a past",
    "a session of Spark",
    "tests/analytics/test_nightly_runs.py",
    "tests/cli/test_up.py",
    "tests/chaos/test_mutants.py",
    "tests/chaos/test_storm.py",
    "a console",
    "a console with every address",
    "a broker without checks",
    "an installed client",
    "a MariaDB",
    "the users of a broker's console",
    "tests/cli/test_bench.py",
    "tests/chaos/test_transfers.py",
    "tests/analytics/test_bench_export.py",
    "tests/analytics/test_export_kills.py",
    "tests/cli/test_private.py",
    "tests/client/test_exactly_once_killed.py",
    "tests/push/test_push.py",
    "tests/webhooks/test_sealed_secrets.py",
    "a broker that knows who may",
    "tests/store/test_segments.py",
    "tests/store/test_in_flight.py",
    "tests/transactions/test_check_back.py",
    "tests/transactions/test_large_checks.py",
    "tests/delivery/test_crowd.py",
)
# What needs the broker that a process starts once for all of its tests: begun after the rest, because a broker that
# idles takes 4 % of a core.
LATER = (
    "an installed client",
    "a MariaDB",
    "the users of a broker's console",
    "tests/chaos/test_transfers.py",
    "tests/client/",
    "tests/delivery/",
    "tests/delivery_filters/",
    "tests/docs/test_compose.py",
    "tests/docs/test_front_door.py",
    "tests/docs/test_pages.py",
    "tests/house/test_tables.py",
    "tests/http/",
    "tests/lookup/",
    "tests/push/",
    "tests/scheduling/",
    "tests/store/test_bodies.py",
    "tests/store/test_crowds.py",
    "tests/store/test_duplicates.py",
    "tests/store/test_fields.py",
    "tests/store/test_grown.py",
    "tests/store/test_in_flight.py",
    "tests/store/test_limits.py",
    "tests/store/test_queues.py",
    "tests/store/test_requests.py",
    "tests/store/test_rows_by_hand.py",
    "tests/transactions/",
)

# With the default, each 700 new objects cost a collection.
gc.set_threshold(50_000, 20, 50)

if "PYTEST_XDIST_WORKER" in os.environ:
    # Until all tests are collected, what is made stays.
    gc.disable()
    _servers = json.loads(os.environ["MQ_SERVERS_OF_TESTS"])
    # A process that takes the place of a crashed one has a number of its own.
    os.environ.update(_servers[int(os.environ.pop("PYTEST_XDIST_WORKER").removeprefix("gw")) % len(_servers)])
    # A pytest that a test starts is none of these processes.
    os.environ["PYTEST_PLUGINS"] = os.environ["PYTEST_PLUGINS"].removesuffix(__name__).rstrip(",")


def pytest_collection_finish() -> None:
    """Tests and what they import are a million objects that stay: no collection goes through them again."""
    gc.freeze()
    gc.enable()


def turn(scope: str) -> tuple[bool, int]:
    """What a file, or what several share, is sorted by: the least is begun first."""
    return scope.startswith(LATER), LONGEST.index(scope) if scope in LONGEST else len(LONGEST)


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """Gives each process whole files of tests, and all files that share something to one."""

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=turn), last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((shared for shared, places in SHARING.items() if file.startswith(places)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)
