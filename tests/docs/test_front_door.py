"""The README and the first steps: their commands are run, and print what the pages show; `./mq up` in test_diaries."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.folder import DataFolder
from tests.broker.running import RunningBroker
from tests.docs import stories
from tests.docs.pages import page

README = page("README.md")
FIRST_STEPS = page("docs/first-steps.md")


def test_the_first_transaction_prints_what_is_shown(broker: RunningBroker, tmp_path: Path) -> None:
    section = README.section("The first transaction")
    [program], [command], [shown] = (section.blocks_of(language) for language in ("python", "sh", "text"))
    home = stories.checkout(tmp_path)
    stories.keep_key(home)
    (home / "first.py").write_text(program.replace("http://127.0.0.1:8000", broker.url))

    [printed] = stories.run([command], home)

    assert printed == shown


def test_mqb_of_a_checkout_finds_the_broker_and_the_key_of_its_folder(broker: RunningBroker, tmp_path: Path) -> None:
    home = stories.checkout(tmp_path)
    stories.keep_key(home)
    folder = DataFolder(home / ".mqbroker")
    with folder.claimed():
        folder.keep_port("web", urlsplit(broker.url).port or 0)
        [printed] = stories.run(["./mq mqb send tea-orders tea | wc -w"], home)

    assert printed.strip() == "1"


def test_the_first_steps_print_what_is_shown(broker: RunningBroker, tmp_path: Path) -> None:
    stories.keep_key(tmp_path)
    steps = stories.typed(FIRST_STEPS.blocks)
    commands = [command.replace("http://127.0.0.1:8000", broker.url) for command, _ in steps]

    printed = stories.run(commands, tmp_path)

    assert [
        f"{command}{found}instead of {shown}"
        for (command, shown), found in zip(steps, printed, strict=True)
        if not stories.agree(shown, found)
    ] == []


def test_the_map_shows_every_room_and_no_other() -> None:
    [drawn] = README.section("Where things are").blocks_of("text")
    places = {line.split()[0].rstrip("/") for line in drawn.splitlines()}

    assert {place for place in places if not (ROOT / place).exists()} == set()
    rooms = {path.parent.name for path in ROOT.glob("*/[!.]*") if path.parent.name[0] not in "._"}
    assert rooms - places <= {"build", "dist"}


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ('{"a": "…", "b": 1}\n', '{"a":"x y","b":1}', True),
        ('{"a": "…", "b": 1}\n', '{"a":"x","b":2}', False),
        ('{"a": …}', '{"a":1}x', False),
        ("", "", True),
        ("", "printed", False),
    ],
)
def test_the_checker_sees_what_differs(shown: str, printed: str, same: bool) -> None:
    assert stories.agree(shown, printed) is same


def test_a_command_that_fails_stops_the_story(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="not here"):
        stories.run(["echo first", "cat 'not here'"], tmp_path)
