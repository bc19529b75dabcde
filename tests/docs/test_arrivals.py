"""The pages for those who come from somewhere: their programs are run, and print what the pages show."""

from pathlib import Path

import pytest

from tests.broker.running import RunningBroker
from tests.docs import stories
from tests.docs.pages import page


@pytest.mark.parametrize(
    ("name", "title", "file"),
    [
        ("docs/from-rocketmq.md", "A transactional producer", "shop.py"),
        ("docs/from-an-outbox.md", "How", "app.py"),
    ],
)
def test_the_program_of_the_page_prints_what_is_shown(
    broker: RunningBroker, tmp_path: Path, name: str, title: str, file: str
) -> None:
    section = page(name).section(title)
    [program], [command], [shown] = (section.blocks_of(language) for language in ("python", "sh", "text"))
    home = stories.checkout(tmp_path)
    stories.keep_key(home)
    (home / file).write_text(program.replace("http://127.0.0.1:8000", broker.url))

    [printed] = stories.run([command], home)

    assert printed == shown
