"""The pages on schedules, relays and fairness: their commands and files do what the pages say."""

import json
import re
from datetime import datetime
from pathlib import Path

import pytest
from mqbroker_client.contrib.relay import configuration

from tests.broker.running import API_KEY, RunningBroker
from tests.control.operators import Operator
from tests.docs import stories
from tests.docs.pages import page

SCHEDULES, RELAY = page("docs/schedules.md"), page("docs/relay.md")
FAIRNESS = page("docs/fairness.md")


def test_the_command_of_the_page_makes_a_schedule(broker: RunningBroker, tmp_path: Path) -> None:
    [command] = SCHEDULES.blocks_of("sh")
    own = {"MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY}
    operator = Operator(broker.url, API_KEY)

    [printed] = stories.run([command.replace("curl", "curl -sS")], tmp_path, own)
    operator.delete("/v1/schedules/nightly-report")

    made = json.loads(printed)
    assert (made["name"], made["cron"], made["time_zone"]) == ("nightly-report", "0 3 * * MON-FRI", "Europe/Berlin")
    assert len(made["next_times"]) == 5
    assert all(datetime.fromisoformat(at).weekday() < 5 for at in made["next_times"])


def test_the_program_of_the_page_receives_in_turns(broker: RunningBroker, tmp_path: Path) -> None:
    [program], [shown] = FAIRNESS.blocks_of("python"), FAIRNESS.blocks_of("text")
    home = stories.checkout(tmp_path)
    (home / "fair.py").write_text(program)
    own = {"MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY}

    [printed] = stories.run(["PYTHONPATH=client .venv/bin/python fair.py"], home, own)

    assert printed == shown


def test_the_file_of_the_page_is_a_relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RABBIT_URL", "amqp://guest:guest@127.0.0.1:1//")
    [lines] = RELAY.blocks_of("toml")
    (tmp_path / "relay.toml").write_text(lines)

    found = configuration.read(tmp_path / "relay.toml")

    assert (found.topic, found.group, found.filter) == ("orders", "to-rabbit", "paid || shipped")
    assert (found.ordered, found.concurrency) == (True, 8)
    # Nothing is connected before the first message.
    found.make_target().close()


def test_the_page_names_each_field_of_a_relay_and_of_each_target() -> None:
    named = set(RELAY.names)

    assert set(configuration.FIELDS) - {"cloudevents", "target"} <= {
        word for name in named for word in re.findall(r"\w+", name)
    }
    for kind, (_, _, needed, more) in configuration.KINDS.items():
        [row] = re.findall(rf"^\| `{kind}` \|.*$", RELAY.text, re.MULTILINE)
        assert {f"`{name}`" for name in (*needed, *more)} <= set(re.findall(r"`\w+`", row))
