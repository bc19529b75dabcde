"""What a split meets that is not as it should be: servers that are gone or wrong, and a run that has died."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from mqbroker_client import Admin

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.servers import postgres
from mqbroker.embedded.servers.standby import let_promote
from tests.broker import characters
from tests.broker.polling import at_this_load, eventually
from tests.broker.prepared_servers import url_in
from tests.broker.running import RunningBroker
from tests.moves.ground import ENDED_SECONDS, Ground

PROMOTE_NOW = "Promote the standby of "


@pytest.fixture
def home(broker: RunningBroker) -> str:
    """A topic of c1 with a message."""
    name = characters.name("shop")
    Admin(broker.client()).create_topic(name, queues=2)
    assert _sends(broker, name)
    return name


def _sends(broker: RunningBroker, topic: str) -> bool:
    return broker.wire().post("/v1/messages", {"topic": topic, "body": "x"}).status == 201


def _changes(broker: RunningBroker, topic: str) -> bool:
    return broker.wire().call("PUT", f"/v1/topics/{topic}", b'{"queues": 4}').status == 200


def test_a_split_whose_standby_is_gone_is_refused_and_the_topic_stays(
    ground: Ground, broker: RunningBroker, home: str
) -> None:
    standby = ground.standby()
    words = ("split", "c1", "--into", "c2", "--standby", url_in(standby, "mqbroker_c1"), "--home", home)
    standby.kill()

    refused = ground.refusal(*words)

    assert refused.startswith("The standby for the cell c2 cannot be reached: ")
    assert _sends(broker, home)


def test_a_database_that_is_no_standby_is_refused(ground: Ground, broker: RunningBroker, home: str) -> None:
    words = ("split", "c1", "--into", "c2", "--standby", ground.url_of("c1"), "--home", home)

    assert ground.refusal(*words) == (
        "The server of --standby is no standby of the cell c1: it accepts writes, so it is the primary itself, "
        "or was already promoted."
    )


def test_a_fence_whose_run_has_died_is_ended_by_a_process_behind_its_time(
    ground: Ground, broker: RunningBroker, home: str
) -> None:
    ground.sql("c1", "UPDATE cell_identity SET epoch = epoch + 1, fenced_until = now() + interval '1 s'")
    ground.sql("c1", "ALTER DATABASE mqbroker_c1 SET default_transaction_read_only = on")
    _end_sessions(ground)
    # By sessions that begin behind the fence, and would take no write for good.
    _changes(broker, home)

    eventually(partial(_sends, broker, home), within_seconds=20)

    eventually(partial(_changes, broker, home), within_seconds=5)
    assert ground.sql("c1", "SELECT fenced_until FROM cell_identity") == [(None,)]


def _end_sessions(ground: Ground) -> None:
    ground.sql(
        "c1",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = current_user",
    )


@contextmanager
def _split_by_hand(ground: Ground, words: tuple[str, ...]) -> Iterator["subprocess.Popen[str]"]:
    """A split that waits until its standby has been promoted."""
    command = commands.manage("cells", *words, "--promote-by-hand")
    with subprocess.Popen(
        command, env=ground.broker.environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(PROMOTE_NOW):
                break
        try:
            yield process
        finally:
            process.kill()


def test_a_standby_that_is_promoted_by_hand_becomes_the_cell(ground: Ground, broker: RunningBroker, home: str) -> None:
    standby, target = ground.standby(), characters.name("c")
    words = ("split", "c1", "--into", target, "--standby", url_in(standby, "mqbroker_c1"), "--home", home)

    with _split_by_hand(ground, words) as process:
        assert not _sends(broker, home)
        standby.promote()
        said, refused = process.communicate(timeout=at_this_load(ENDED_SECONDS))

    assert (process.returncode, refused) == (0, "")
    assert ": done. It took no writes for " in said.splitlines()[-1]
    eventually(partial(_sends, broker, home), within_seconds=10)
    assert ground.stored(home)[target] >= 2


def test_a_split_whose_standby_is_killed_behind_the_fence_is_taken_back(
    ground: Ground, broker: RunningBroker, home: str
) -> None:
    standby, target = ground.standby(), characters.name("c")
    words = ("split", "c1", "--into", target, "--standby", url_in(standby, "mqbroker_c1"), "--home", home)

    with _split_by_hand(ground, words) as process:
        standby.kill()
        began = time.monotonic()
        _, refused = process.communicate(timeout=at_this_load(ENDED_SECONDS))
        ground.cells("undo")
        eventually(partial(_sends, broker, home), within_seconds=10)

    assert time.monotonic() - began < at_this_load(ENDED_SECONDS)
    assert " is away (" in refused
    assert ground.stored(home)["c1"] == 2


@pytest.fixture
def away(ground: Ground, tmp_path: Path) -> Iterator[postgres.Server]:
    """A server with one cell, `c9`, where new topics go."""
    tmp_path.chmod(0o711)
    server = postgres.Server(tmp_path / "away")
    server.start()
    ground.cells("add", "c9", server.url)
    let_promote(server, "mqbroker")
    ground.cells("open", "c9")
    yield server
    ground.cells("open", "c1")
    server.stop()


def test_topics_go_on_in_the_new_cell_though_the_old_one_is_killed_at_the_promotion(
    ground: Ground, broker: RunningBroker, away: postgres.Server
) -> None:
    moving, staying = characters.name("moving"), characters.name("staying")
    for topic in (moving, staying):
        Admin(broker.client()).create_topic(topic, queues=2)
        assert _sends(broker, topic)
    target, standby = characters.name("c"), ground.standby(away)
    url = url_in(standby, "mqbroker")

    with _split_by_hand(ground, ("split", "c9", "--into", target, "--standby", url, "--home", moving)) as process:
        away.kill()
        standby.promote()
        began = time.monotonic()
        process.communicate(timeout=at_this_load(ENDED_SECONDS))
    ground.run("resume")
    eventually(partial(_sends, broker, moving), within_seconds=10)
    assert time.monotonic() - began < at_this_load(ENDED_SECONDS)
    assert broker.wire().post("/v1/messages", {"topic": staying, "body": "x"}).problem["code"] == "cell_away"

    away.start()
    ground.cells("resume")

    eventually(partial(_sends, broker, staying), within_seconds=10)
    assert (ground.stored(moving)["c9"], ground.stored(staying)[target]) == (1, 1)
    assert ground.stored(moving)[target] >= 2
