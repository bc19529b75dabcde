"""The client's page does what it says: its programs run as they are written, the first ones beside the demonstration.

The client is installed in environments of their own, by the page's commands. The programs that answer the broker's
calls are run by `test_frameworks.py`.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from mqbroker_client import Producer

from mqbroker.embedded import commands
from mqbroker.embedded.processes import launch
from tests.broker import databases
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import ended
from tests.client import pages


@pytest.fixture(scope="module")
def demonstrated(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker as `./mq up` starts it: nothing is in it but the demonstration, which goes on."""
    folder = tmp_path_factory.mktemp("demonstrated")
    with databases.copied(prepared) as url:
        broker = RunningBroker(folder, url, os.environ["REDIS_URL"])
        with broker, demonstration(broker, folder):
            eventually(partial(traded, broker))
            yield broker


@contextmanager
def demonstration(broker: RunningBroker, folder: Path) -> Iterator[None]:
    keys = {"SHOP_API_KEY": API_KEY, "MQBROKER_DATA_DIR": str(folder)}
    words = launch.command("stay", signal.SIGTERM, *commands.demonstration(broker.url, "--forever"))
    with subprocess.Popen(words, env=broker.environment | keys, cwd=commands.ROOT) as shop:
        try:
            yield
        finally:
            shop.send_signal(signal.SIGTERM)


def traded(broker: RunningBroker) -> bool:
    """Whether the shop's first message is in its topic."""
    topic = broker.wire().get("/v1/topics/demo-orders")
    return topic.status == 200 and any(queue["max_offset"] for queue in topic.document["offsets"])


def test_the_demonstration_leaves_to_others_the_names_that_they_try_first(demonstrated: RunningBroker) -> None:
    lists = [
        demonstrated.wire().get(f"/v1/{kind}").document["results"]
        for kind in ("topics", "producer-groups", "consumer-groups")
    ]
    names = [found["name"] for results in lists for found in results if not found.get("system")]

    assert sorted(names) == ["demo-coupons", "demo-orders", "demo-shop"]


@pytest.fixture
def reader(installed: Path, tmp_path: Path) -> pages.Reader:
    """One who has installed the client, and nothing else."""
    return pages.Reader(tmp_path, installed)


def test_the_first_programs_print_what_they_promise_in_every_run(
    demonstrated: RunningBroker, reader: pages.Reader
) -> None:
    reader.write(pages.reader_of(demonstrated))

    for _ in range(3):
        assert reader.run("first.py") == "b'order 1'\n"
    assert reader.run("shop.py") == "COMMIT True\n"


def test_the_poller_of_the_page_answers_from_the_books_of_the_page(broker: RunningBroker, reader: pages.Reader) -> None:
    reader.write(pages.reader_of(broker) | pages.own_names())
    paid, unpaid = (reader.begin_and_lose(paid=was_paid) for was_paid in (True, False))

    with subprocess.Popen(
        [reader.python, "poll.py"], cwd=reader.folder, env=reader.environment(), stdin=subprocess.PIPE, text=True
    ) as poller:
        states = [eventually(partial(ended, broker.wire(), lost))["state"] for lost in (paid, unpaid)]
        poller.communicate("\n", timeout=120)

    assert states == ["COMMITTED", "ROLLED_BACK"]
    assert poller.returncode == 0


def test_a_hundred_tasks_of_the_page_send(broker: RunningBroker, installed_with_extras: Path, tmp_path: Path) -> None:
    reader = pages.Reader(tmp_path, installed_with_extras)
    reader.write(pages.reader_of(broker) | pages.own_names())

    assert reader.run("tasks.py") == "100\n"


def test_the_hooks_of_the_page_time_and_log_a_send(broker: RunningBroker, reader: pages.Reader) -> None:
    reader.write(pages.reader_of(broker) | pages.own_names())

    assert re.fullmatch(r"send invoices\S* \d+ ms\n", reader.run("watched.py"))


def test_the_consumer_of_the_page_books_each_order_once_until_sigterm(
    broker: RunningBroker, reader: pages.Reader
) -> None:
    names = pages.own_names()
    reader.write(pages.reader_of(broker) | names)
    topic = names['"orders"'].strip('"')
    Producer(broker.client(), topic).send(topic, "order 1")

    with subprocess.Popen(
        [reader.python, "consume.py"], cwd=reader.folder, env=reader.environment(), stdout=subprocess.PIPE, text=True
    ) as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "booked order 1\n"
        consumer.send_signal(signal.SIGTERM)
        consumer.communicate(timeout=120)

    assert consumer.returncode == 0


def test_the_secret_of_the_page_is_one(installed: Path, tmp_path: Path) -> None:
    [export] = [block for block in pages.README.blocks_of("sh") if "CHECK_SECRET" in block]
    path = f"{installed.parent}:{os.environ['PATH']}"

    printed = subprocess.run(
        ["sh", "-c", f'{export}printf %s "$CHECK_SECRET"'],
        cwd=tmp_path,
        env=pages.Reader(tmp_path, installed).environment() | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert printed.startswith("whsec_")


@pytest.mark.parametrize(
    "text", ["No name.\n\n```python\n1\n```\n", "`a.py`\n\n```python\n1\n```\n`a.py`\n\n```python\n2\n```\n"]
)
def test_a_program_that_no_test_could_run_is_seen(text: str) -> None:
    with pytest.raises((IndexError, AssertionError)):
        pages.programs(text)


def test_every_program_of_the_page_is_run() -> None:
    assert set(pages.programs(pages.README.text)) == {
        *("first.py", "shop.py", "poll.py", "tasks.py", "consume.py", "watched.py"),
        *("register.py", "checks.py", "app.py", "settings.py", "views.py", "urls.py"),  # by test_frameworks.py
    }
