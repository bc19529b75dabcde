"""A plugin for tests in several processes: servers of its own for each, and whole files to each, the longest first.

`./mq test` names it in PYTEST_PLUGINS, starts the servers and lists them in MQ_SERVERS_OF_TESTS.
"""

import gc
import itertools
import json
import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from django.conf import settings

from mqbroker.embedded.commands import ROOT
from mqbroker.environment import server_urls
from store.db.server_url import database
from tests.broker import databases, forks, ports
from tests.lanes import PLAIN, SPARK, light_lane_of, own_lane_of
from tests.workers import Next, Workers

# The files and folders whose tests share what takes long to start, by what that is: they stay in one process. The first
# that names a file has it. Spark is not here: one process runs all tests that use Spark.
SHARING = {
    "an installed client": (
        "tests/client/test_frameworks.py",
        "tests/client/test_readme.py",
        "tests/client/test_wheel.py",
    ),
    "RocketMQ's own clients": (
        "tests/rocketmq/test_clients_page.py",
        "tests/rocketmq/test_gateway_killed.py",
        "tests/rocketmq/test_official_clients.py",
    ),
    "a console with every address": (
        "tests/console/test_console_hostile.py",
        "tests/console/test_console_matrix.py",
    ),
    "the syntax of all modules": (
        "tests/house/test_console.py",
        "tests/house/test_layout.py",
        "tests/house/test_ownership.py",
        "tests/house/test_statements.py",
    ),
    "a console": ("tests/console/",),
    "a broker without checks": ("tests/control/",),
    "a broker of two teams": ("tests/namespaces/",),
    "a broker of three cells": ("tests/over_cells/",),
    "a broker that knows who may": ("tests/access/",),
    "the users of a broker's console": ("tests/actions/",),
    "the targets of relays": ("tests/relay/",),
    "a provider and a console": ("tests/sign_on/",),
}
# The same by a word in the name of a test or in its parameters, whatever its file.
SHARING_BY_WORD = {"mariadb": "a MariaDB"}
# What takes longest, by the CPU of all its processes or by what it waits for: begun before its like, so that none of it
# is what all others are waited for at the end.
LONGEST = (
    "tests/cli/test_up.py",
    "tests/chaos/test_mutants.py",
    "tests/chaos/test_storm.py",
    "a console",
    "a console with every address",
    "a broker without checks",
    "an installed client",
    "RocketMQ's own clients",
    "a MariaDB",
    "the users of a broker's console",
    "a broker of three cells",
    "a broker of two teams",
    # These wait for long.
    "the targets of relays",
    "tests/tasks/test_task_deaths.py",
    "tests/task_backend/test_task_shop.py",
    "tests/delivery/test_slow_readers.py",
    "tests/push/test_push.py",
    "tests/transactions/test_check_back.py",
    "tests/transactions/test_deleted_groups.py",
    "tests/transactions/test_large_checks.py",
    "tests/http/test_http_connections.py",
    "tests/delivery/test_long_polls.py",
    "tests/scheduling/test_recalls.py",
    "tests/scheduling/test_levels.py",
    "tests/transactions/test_polls.py",
    "tests/lookup/test_traces.py",
    "tests/scheduling/test_delay_stats.py",
    "tests/push/test_push_health.py",
    "tests/moves/test_standing.py",
    "tests/scheduling/test_beat_table.py",
    "tests/chaos/test_worker_killed.py",
    "tests/barrier/test_kept_outage.py",
    "tests/barrier/test_barrier_accidents.py",
    # These compute again.
    "tests/cli/test_bench.py",
    "tests/chaos/test_transfers.py",
    "tests/cli/test_private.py",
    "tests/client/test_exactly_once_killed.py",
    "tests/webhooks/test_sealed_secrets.py",
    "a broker that knows who may",
    "tests/store/test_segments.py",
    "tests/store/test_in_flight.py",
    "tests/delivery/test_crowd.py",
)

# `./mq test --twice` runs what is unsteady so often.
IS_TWICE = bool(os.environ.get("MQ_TWICE"))
REPETITIONS = 10
# Of PostgreSQL, between two groups: a shared broker on three cells has 50. Another broker that still runs has as many.
MOST_SESSIONS = 250
# The lane of each group of tests.
lane_by_group: dict[tuple[str, str], str] = {}
# Of this process, by name.
made: dict[str, pytest.FixtureDef[Any]] = {}
unsteady: dict[str, pytest.TestReport] = {}
failures: Counter[str] = Counter()

# With the default, each 700 new objects cost a collection.
gc.set_threshold(50_000, 20, 50)
# Until all tests are collected, what is made stays.
gc.disable()

# A pytest that a test starts is none of these processes.
SERVERS: list[dict[str, str]] = json.loads(os.environ.pop("MQ_SERVERS_OF_TESTS"))
os.environ["PYTEST_PLUGINS"] = os.environ["PYTEST_PLUGINS"].removesuffix(__name__).rstrip(",")


# Those of the processes that are not yet there.
fork_servers: list[forks.ForkServer] = []


def pytest_sessionstart(session: pytest.Session) -> None:
    """What all processes of this checkout's tests fork brokers from imports its packages while tests are collected."""
    if session.config.rootpath == ROOT and not session.config.option.collectonly:
        fork_servers.extend(forks.start(len(SERVERS)))


def pytest_collection_finish() -> None:
    """Tests and what they import are a million objects that stay: no collection goes through them again."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Lets the last collection have them, too: a package says on the terminal what it leaves behind."""
    gc.unfreeze()


def group_of(item: pytest.Item) -> tuple[str, str]:
    """What a test shares with others: its file, or what tests of several files share; and the lane of the test.

    The other tests of a console do not wait in the lane of the tests that open this console in a browser.
    """
    file, _, test = item.nodeid.partition("::")
    by_file = (shared for shared, places in SHARING.items() if file.startswith(places))
    by_word = (shared for word, shared in SHARING_BY_WORD.items() if word in test)
    return next(itertools.chain(by_word, by_file), file), own_lane_of(item)


def turn(group: tuple[str, str]) -> int:
    """What a group is sorted by: the least is begun first."""
    name, _ = group
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: Next | None) -> Generator[None, None, None]:
    """Ends what tests of several files share with the last of the files that need it: pytest keeps a fixture of the
    session until its process ends, and a broker that idles takes 4 % of a core.
    """
    yield
    chain = nextitem.listchain() if nextitem else []
    if not chain:
        return
    group, following = group_of(item), group_of(chain[-1])
    for name in (needed(group) - needed(following)) & made.keys():
        made.pop(name).finish(item._request)  # type: ignore[attr-defined]  # a function's; only an error names it
    if following != group:
        left = databases.sessions()
        assert sum(left.values()) <= MOST_SESSIONS, f"{group[0]} has left sessions of PostgreSQL behind: {left}"


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> None:
    """Notes the fixtures of the session that are there. A folder's own of the same name ends with the folder."""
    if fixturedef.scope == "session":
        made[fixturedef.argname] = fixturedef


def needed(group: tuple[str, str]) -> set[str]:
    """The fixtures of the session, each with processes of its own, that the tests of a group may need."""
    name, lane = group[0], lane_by_group[group]
    fixtures = {"broker"} if lane != PLAIN else set()
    return fixtures | ({"spark"} if lane == SPARK else set()) | ({"mariadb_server"} if name == "a MariaDB" else set())


def use_servers(number: int) -> None:
    """Gives this process servers and ports of its own, in its environment and in what Django's settings have read of
    it.
    """
    ports.share(number, len(SERVERS))
    os.environ.update(SERVERS[number])
    settings.DATABASE_URL = os.environ["DATABASE_URL"]
    settings.REDIS_URL = server_urls.task_broker(os.environ["REDIS_URL"])
    # What holds on to this one has it, too.
    settings.DATABASES["default"].update(database(settings.DATABASE_URL))
    settings.TASK_QUEUE = server_urls.task_queue(settings.DATABASES["default"])
    if number < len(fork_servers):
        forks.use(fork_servers.pop(number))
    leave_fork_servers(0)


def leave_fork_servers(kept: int) -> None:
    """Leaves them, but for the first ones, to the other processes, each of which ends its own with itself."""
    while len(fork_servers) > kept:
        fork_servers.pop().close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs whole groups in each process, the longest first."""
    if session.testsfailed or session.config.option.collectonly:
        return None
    groups: dict[tuple[str, str], list[int]] = {}
    for index, item in enumerate(session.items):
        groups.setdefault(group_of(item), []).append(index)
    lanes: dict[str, list[list[int]]] = {}
    for group in sorted(groups, key=turn):
        _, own_lane = group
        lane_by_group[group] = own_lane or light_lane_of([session.items[index] for index in groups[group]])
        lanes.setdefault(lane_by_group[group], []).append(groups[group])
    # Read once, before this process is forked: use_servers gives each fork values of its own.
    assert settings.DATABASES
    # The first process is followed by others, one after the other, for what runs alone.
    workers = Workers(session, lanes, use_servers, lambda: leave_fork_servers(1))
    workers.run(len(SERVERS))
    unsteady.update(workers.unsteady)
    if IS_TWICE and unsteady:
        failures.update(workers.repeat(unsteady, REPETITIONS))
    leave_fork_servers(0)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the tests that failed once and passed alone, with what they said: a fault of the test or of the product."""
    if not unsteady:
        return
    terminalreporter.stats["unsteady"] = list(unsteady.values())
    terminalreporter.write_sep("=", "UNSTEADY", yellow=True)
    for name, report in unsteady.items():
        again = f"; {failures[name]} of {REPETITIONS} times again" if IS_TWICE else ""
        terminalreporter.write_sep("_", f"{name} failed, and passed alone{again}")
        terminalreporter.write_line(report.longreprtext)
        for title, content in report.sections:
            terminalreporter.write_sep("-", title)
            terminalreporter.write_line(content)
