"""The first example of the client's README does what it says."""

import re
from pathlib import Path

import pytest

from tests.broker.characters import name
from tests.broker.running import API_KEY, RunningBroker

README = Path(__file__).resolve().parents[2] / "client" / "README.md"


def test_the_first_example_runs(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    example = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[0]
    here = {"http://127.0.0.1:8000": broker.url, "mq_…": API_KEY, '"orders"': f'"{name("orders")}"'}
    for written, meant in here.items():
        assert written in example
        example = example.replace(written, meant)

    exec(example, {})  # the README's own text

    assert capsys.readouterr().out == "b'order 1'\n"
