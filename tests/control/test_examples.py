"""The examples of the API: each is a request that a broker took, with its answer.

`MQ_WRITE_EXAMPLES=1 ./mq test tests/control/test_examples.py` records them anew.
"""

import json
import os
import re
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest

from mqbroker.schema.examples import RECORDED, Example, examples
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document
from tests.control.operators import Operator
from tests.control.stock import Stock

# No JSON, or the document itself.
WITHOUT = ("GET /metrics", "GET /v1/schema")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
SPARE = re.compile(r"(spare|key|fuzzed)-[0-9a-f]{8}")
# Each is another one every time.
SHOWN = {
    "receipt_handle": "AQAAAAAAAAABAAAAAAAAAAE",
    "recall_handle": "AQGQAAAAAHAAgAAAAAAAAAAB",
    "key": "mq_Yx0dS3m9cQ1v7b2nK5tR8wE4uJ6pL0aZ",
    "secret": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
    "next": "eyJuYW1lIjoib3JkZXJzIn0",
}
NAMES = {"group": "coupons", "producer_group": "shop", "namespace": "team", "name_or_id": "team-shop"}
# By the list in which a thing has its `name`.
NAMES_IN = {"namespaces": "team", "producer-groups": "shop", "consumer-groups": "coupons", "api-keys": "team-shop"}
LISTED = 2


class Recorder:
    """Makes examples alike: ids are counted, names and times are the same in every run."""

    def __init__(self, name: str, path: str) -> None:
        self._name = name
        # What the thing is called that the call is about.
        self._own = NAMES_IN.get("".join(path.split("/")[2:3]), "orders")
        self._ids: dict[str, str] = {}

    def shown(self, value: Any, field: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self.shown(one, name) for name, one in value.items()}
        if isinstance(value, list):
            kept = value if field in ("forecast", "scopes") else value[:LISTED]
            return [self.shown(one, field.removesuffix("s")) for one in kept[:LISTED]]
        if not isinstance(value, str):
            return value
        if field in SHOWN:
            return SHOWN[field]
        # A path calls a group of producers `group`, too.
        name = self._own if field == "name" or (field, self._own) == ("group", "shop") else NAMES.get(field, "orders")
        value = SPARE.sub(name, value.replace(self._name, name))
        return TIME.sub("2026-01-31T12:00:00Z", UUID.sub(self._counted, value))

    def _counted(self, found: re.Match[str]) -> str:
        number = len(self._ids) + 1
        return self._ids.setdefault(found[0], f"01900000-0000-7000-8000-{number:012}")


def observed(operator: Operator, stock: Stock, label: str) -> Example:
    """What the operation answers to a request that it takes."""
    method, _, path = label.partition(" ")
    request, recorder = stock.request(label), Recorder(stock.name, path)
    named = {name: request.path[name] for name in re.findall(r"{(\w+)}", path)}
    address = path.format(**{name: quote(str(value), safe="") for name, value in named.items()})
    query = f"?{urlencode(request.query)}" if request.query else ""
    body = None if request.body is None else json.dumps(request.body).encode()
    answer = operator.call(method, address + query, body)
    assert 200 <= answer.status < 300, answer
    return Example(
        answer.status,
        recorder.shown(named),
        recorder.shown(dict(request.query)),
        recorder.shown(request.body),
        recorder.shown(answer.document),
    )


@pytest.fixture(scope="module")
def found(broker: RunningBroker) -> dict[str, Example]:
    """The examples that the broker of these tests gives."""
    operator, stock = Operator(broker.url, API_KEY), Stock(broker)
    paths: Document = operator.reads("/v1/schema")["paths"]
    labels = [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    return {label: observed(operator, stock, label) for label in labels if label not in WITHOUT}


def test_each_operation_has_the_example_that_a_broker_gives(found: dict[str, Example]) -> None:
    if os.environ.get("MQ_WRITE_EXAMPLES"):
        written = msgspec.json.format(msgspec.json.encode(dict(sorted(found.items()))), indent=1)
        RECORDED.write_bytes(written + b"\n")
        examples.cache_clear()

    assert found.keys() == examples().keys()
    assert [label for label, one in found.items() if differs(one, examples()[label])] == []


def test_an_answer_names_what_its_request_has_named() -> None:
    named = {label: (one.path, one.answer) for label, one in examples().items() if isinstance(one.answer, dict)}
    others = {
        label: (path, answer["name"])
        for label, (path, answer) in named.items()
        if "name" in answer and path and answer["name"] not in path.values()
    }

    assert others == {}


def differs(one: Example, other: Example) -> list[str]:
    """The parts of two examples whose fields differ."""
    places = ("status", "path", "query", "request", "answer")
    both = ((place, getattr(one, place), getattr(other, place)) for place in places)
    return [place for place, ours, theirs in both if _shape(ours, theirs) != _shape(theirs, ours)]


def _shape(value: Any, beside: Any) -> Any:
    """The names of fields, as deep as both have them; what is null or empty in one may be anything in the other.

    What comes in several kinds, as a retry policy does, has what its kind may have, and other tests make the first one.
    """
    if isinstance(value, dict) and isinstance(beside, dict):
        if "kind" in value or "kind" in beside:
            return None
        return {name: _shape(one, beside.get(name)) for name, one in value.items()}
    if isinstance(value, list) and isinstance(beside, list) and value and beside:
        return [_shape(value[0], beside[0])]
    return None
