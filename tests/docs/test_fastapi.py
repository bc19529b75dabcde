"""The program of the page on FastAPI, served by uvicorn: its row and its message are one transaction, twice started."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes import launch
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import API_KEY, RunningBroker
from tests.docs.pages import page
from tests.docs.stories import BARE

PAGE = page("docs/fastapi.md")


@contextmanager
def served(folder: Path, port: int, broker: RunningBroker) -> Iterator[str]:
    """The program under uvicorn as the page starts it, until SIGTERM, which has to end it with 0."""
    [_, start] = PAGE.section("The whole program").blocks_of("text")[:2]
    words = start.split()[2:-1]  # uvicorn shop:app --port
    path = os.pathsep.join([str(folder), str(ROOT / "client")])
    environment = BARE | {"MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY, "PYTHONPATH": path}
    command = launch.command("stay", signal.SIGTERM, sys.executable, "-m", *words, str(port), "--log-level", "warning")
    with subprocess.Popen(command, cwd=folder, env=environment) as server:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            code = server.wait(120)
    assert code in (0, -signal.SIGTERM)


def asked(method: str, url: str) -> Any:
    """The JSON of an answer, or None where nothing listens yet."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=120) as answer:
            return json.load(answer)
    except ConnectionError:
        return None
    except urllib.error.URLError as problem:
        if isinstance(problem.reason, ConnectionError):
            return None
        raise


def has_coupons(url: str, count: int) -> bool:
    return len(asked("GET", f"{url}/coupons")) == count


def test_an_order_over_fastapi_is_followed_by_its_coupon_also_behind_a_second_start(
    broker: RunningBroker, tmp_path: Path
) -> None:
    [program] = PAGE.blocks_of("python")
    (tmp_path / "shop.py").write_text(program)

    for start, item in enumerate(("tea", "coffee"), start=1):
        with served(tmp_path, free_port(), broker) as url:
            assert eventually(partial(asked, "POST", f"{url}/orders/{item}"), within_seconds=30) == start
            eventually(partial(has_coupons, url, start), within_seconds=30)

    with served(tmp_path, free_port(), broker) as url:
        assert eventually(partial(asked, "GET", f"{url}/coupons"), within_seconds=30) == ["tea", "coffee"]
