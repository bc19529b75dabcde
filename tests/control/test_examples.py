"""The examples of the API: the requests of docs/api.md, typed in the order of the page, with a broker's answers.

`MQ_WRITE_EXAMPLES=1 ./mq test tests/control/test_examples.py` records the answers anew.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import psycopg
import pytest

from mqbroker.schema.examples import RECORDED, examples
from mqbroker.schema.fields import Tables
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Answer, Document
from tests.control.operators import Operator
from tests.control.stock import SWITCH_OFF
from tests.docs.pages import page

# No JSON, or the document itself.
WITHOUT = ("GET /metrics", "GET /v1/schema")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# Each is another one every time.
SHOWN = {
    "recall_handle": "AQGQAAAAAHAAgAAAAAAAAAAB",
    "key": "mq_Yx0dS3m9cQ1v7b2nK5tR8wE4uJ6pL0aZ",
    "secret": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
    "next": "eyJuYW1lIjoib3JkZXJzIn0",
}
RECEIPTS = [f"AQAAAAAAAAABAAAAAAAAA{letter}E" for letter in "ABCDEFGH"]
LISTED = 3
SECTION = re.compile(r"^## `(?P<label>[^`]+)`$(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


class Call(NamedTuple):
    """A call of the page: its request as it is printed, and its answer, if the page shows it."""

    label: str
    request: str
    answer: Any


def calls() -> Iterator[Call]:
    """The calls of the page from top to bottom."""
    for section in SECTION.finditer(page("docs/api.md").text):
        [request] = re.findall(r"^```http\n(.*?)^```$", section["text"], re.MULTILINE | re.DOTALL)
        answers = re.findall(r"^```json\n(.*?)^```$", section["text"], re.MULTILINE | re.DOTALL)
        yield Call(section["label"], request, json.loads(answers[0]) if answers else None)


@dataclass
class Reader:
    """Types the page, with the ids and handles of a broker's answers in place of those that the page shows."""

    operator: Operator
    database_url: str
    given: dict[str, str] = field(default_factory=dict)

    def types(self, call: Call) -> Answer:
        line, _, body = self._own(call.request).partition("\n")
        method, _, address = line.partition(" ")
        if call.label.startswith("POST /v1/discarded/"):
            # By hand, because its checks would take minutes.
            with psycopg.connect(self.database_url) as connection:
                connection.execute(SWITCH_OFF, [address.split("/")[3]])
        if call.label in WITHOUT:
            assert self.operator.page(address, Authorization=f"Bearer {API_KEY}").status == 200
            return Answer(200, {}, {})
        answer = self.operator.call(method, address, body.encode() if body else None)
        self._learn(call.answer, answer.document)
        return answer

    def _own(self, text: str) -> str:
        for shown, own in self.given.items():
            text = text.replace(shown, own)
        return text

    def _learn(self, shown: Any, own: Any) -> None:
        """Notes what the broker gave in place of each id that the page shows."""
        if isinstance(shown, dict) and isinstance(own, dict):
            if "url" in shown and "id" in shown:
                self.given.setdefault(f"/endpoints/{shown['id']}", f"/endpoints/{own['id']}")
            for name, value in shown.items():
                self._learn(value, own.get(name))
        elif isinstance(shown, list) and isinstance(own, list):
            for one, other in zip(shown, own, strict=False):
                self._learn(one, other)
        elif isinstance(shown, str) and isinstance(own, str) and self._is_another_every_time(shown):
            self.given.setdefault(shown, own)

    def _is_another_every_time(self, shown: str) -> bool:
        return bool(UUID.fullmatch(shown)) or shown in RECEIPTS or shown in SHOWN.values()


class Recorder:
    """Makes answers alike: ids and receipts are those of the page, further ones are counted, times are the same."""

    def __init__(self, given: Document) -> None:
        # Two ids of the page may be one message's, which a receive shows in another order: the first counts.
        self._shown: dict[str, str] = {}
        for shown, own in given.items():
            self._shown.setdefault(own, shown)
        self._ids = max((int(shown[-12:]) for shown in given if UUID.fullmatch(shown)), default=0)
        self._receipts = [receipt for receipt in RECEIPTS if receipt not in given]

    def shown(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self.shown(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.shown(one, name.removesuffix("s")) for one in value[:LISTED]]
        if not isinstance(value, str):
            return value
        if name in SHOWN:
            return SHOWN[name]
        if name == "receipt_handle":
            return self._shown.get(value) or self._shown.setdefault(value, self._receipts.pop(0))
        return TIME.sub("2026-01-31T12:00:00Z", UUID.sub(self._counted, value))

    def _counted(self, found: re.Match[str]) -> str:
        if found[0] not in self._shown:
            self._ids += 1
            self._shown[found[0]] = f"01900000-0000-7000-8000-{self._ids:012}"
        return self._shown[found[0]]


@pytest.fixture(scope="module")
def replayed(broker: RunningBroker) -> dict[str, Answer]:
    """The answers to the calls of the page."""
    reader = Reader(Operator(broker.url, API_KEY), broker.database_url)
    answers = {call.label: reader.types(call) for call in calls()}
    if os.environ.get("MQ_WRITE_EXAMPLES"):
        recorder = Recorder(reader.given)
        renewed = {
            label: msgspec.structs.replace(
                one, status=answers[label].status, answer=recorder.shown(answers[label].document)
            )
            for label, one in examples().items()
        }
        RECORDED.write_bytes(msgspec.json.format(msgspec.json.encode(renewed), indent=1) + b"\n")
        examples.cache_clear()
    return answers


def test_a_reader_who_types_the_page_from_top_to_bottom_succeeds(replayed: dict[str, Answer]) -> None:
    assert {label: answer.document for label, answer in replayed.items() if not 200 <= answer.status < 300} == {}


def test_the_page_has_each_operation_once_and_the_examples_have_its_order(broker: RunningBroker) -> None:
    paths: Document = Operator(broker.url, API_KEY).reads("/v1/schema")["paths"]
    labels = [call.label for call in calls()]

    assert sorted(labels) == sorted(f"{method.upper()} {path}" for path, methods in paths.items() for method in methods)
    assert [label for label in labels if label not in WITHOUT] == list(examples())


def test_each_operation_has_the_answer_that_a_broker_gives(replayed: dict[str, Answer]) -> None:
    found = {label: (one.status, one.answer, replayed[label]) for label, one in examples().items()}

    assert [
        label
        for label, (status, answer, own) in found.items()
        if status != own.status or _shape(answer, own.document) != _shape(own.document, answer)
    ] == []


def test_an_answer_names_what_its_request_has_named() -> None:
    named = {label: (one.path, one.answer) for label, one in examples().items() if isinstance(one.answer, dict)}
    others = {
        label: (path, answer["name"])
        for label, (path, answer) in named.items()
        if "name" in answer and path and answer["name"] not in path.values()
    }

    assert others == {}


def test_the_page_has_a_row_for_each_field_of_a_body(broker: RunningBroker) -> None:
    """In the table of the call, or of the earlier call that the table refers to."""
    schema: Document = Operator(broker.url, API_KEY).reads("/v1/schema")
    tables = Tables(schema["components"]["schemas"])
    sections = {found["label"]: found["text"] for found in SECTION.finditer(page("docs/api.md").text)}
    for label, text in sections.items():
        method, _, path = label.partition(" ")
        fields = tables.rows(schema["paths"][path][method.lower()]).keys()
        earlier = [sections[other] for other in re.findall(r"the fields of `([A-Z]+ [^`]+)`", text)]
        rows = set(re.findall(r"^\|`(\w+)`\|", "".join([text, *earlier]), re.MULTILINE))
        assert fields - rows == set(), label


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
