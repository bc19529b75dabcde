"""The OpenAPI document, and whether both planes do as it says."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from schemathesis import GenerationMode

from mqbroker.embedded import commands
from tests.broker import forks
from tests.broker.running import API_KEY, RunningBroker
from tests.control.fuzzing import TAKES_ANYTHING, calls, operations, reached
from tests.control.operators import Operator
from tests.control.stock import Stock


@pytest.fixture(scope="module")
def document(broker: RunningBroker) -> Any:
    """The OpenAPI document, as the broker serves it."""
    return Operator(broker.url, API_KEY).reads("/v1/schema")


@pytest.fixture(scope="module")
def stock(broker: RunningBroker) -> Stock:
    """One of each thing that the parameters of paths can name."""
    return Stock(broker)


def test_the_document_is_openapi_3_1_of_both_planes(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    calls = {(method, path) for path, found in document["paths"].items() for method in found}
    assert {("put", "/v1/topics/{topic}"), ("post", "/v1/transactions"), ("get", "/v1/transactions")} <= calls


def test_the_document_is_valid_and_made_without_a_warning(broker: RunningBroker) -> None:
    words = commands.manage("spectacular", "--validate", "--fail-on-warn", "--file", os.devnull)

    made = forks.run(words, broker.environment)

    assert (made.returncode, made.stderr) == (0, "")


def test_every_default_obeys_its_own_schema(document: Any) -> None:
    narrowed = [(place, schema) for place, schema in schemas("", document) if "default" in schema]
    assert narrowed

    broken = [
        f"{place}: {error.message}"
        for place, schema in narrowed
        for error in Draft202012Validator(schema | {"components": document["components"]}).iter_errors(
            schema["default"]
        )
    ]

    assert broken == []


def test_a_default_that_breaks_its_own_schema_is_caught() -> None:
    broken = {"type": "string", "pattern": "^a$", "default": ""}

    [(place, found)] = [pair for pair in schemas("", {"properties": {"name": broken}}) if "default" in pair[1]]

    assert (place, found) == ("/properties/name", broken)
    assert not Draft202012Validator(found).is_valid("")


def schemas(place: str, node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document with its place in it."""
    if isinstance(node, dict):
        yield place, node
    for name, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from schemas(f"{place}/{name}", inner)


def test_every_call_says_what_it_answers(document: Any) -> None:
    for path, found in document["paths"].items():
        for method, operation in found.items():
            answers = operation["responses"]
            told = [status for status, answer in answers.items() if status.startswith("2") and "content" in answer]
            assert told or method == "delete", f"{method} {path}: add it to mqbroker.schema.calls"


def test_every_operation_can_be_refused_with_a_problem(document: Any) -> None:
    problem = {"$ref": "#/components/responses/Problem"}

    assert list(document["components"]["responses"]["Problem"]["content"]) == ["application/problem+json"]
    for path, found in document["paths"].items():
        for operation in found.values():
            assert operation["responses"]["default"] == problem
            if operation.get("security"):
                assert operation["responses"]["401"] == problem, path


def test_every_operation_takes_a_request_and_answers_as_the_schema_says(
    document: Any, broker: RunningBroker, stock: Stock, subtests: pytest.Subtests
) -> None:
    for operation in operations(document):
        with subtests.test(operation.label):
            assert 200 <= reached(broker.url, operation, stock) < 300


def test_every_call_does_as_the_schema_says(
    document: Any, broker: RunningBroker, stock: Stock, subtests: pytest.Subtests
) -> None:
    for operation in operations(document):
        with subtests.test(operation.label):
            calls(broker.url, operation, GenerationMode.POSITIVE, stock.known)


def test_the_schema_names_every_field_of_what_happened(
    document: Any, operator: Operator, orders: str, shop: str
) -> None:
    half = operator.make("/v1/transactions", producer_group=shop, topic=orders, body="order", delay_level=1).document
    end = {"producer_group": shop, "state": "COMMIT", "remark": "paid"}
    operator.make(f"/v1/transactions/{half['transaction_id']}/end", **end)

    history = operator.reads(f"/v1/transactions/{half['transaction_id']}")["history"]
    events = operator.reads(f"/v1/messages/{half['message_id']}/trace")["events"]

    schemas = document["components"]["schemas"]
    assert {name for event in history for name in event} <= schemas["TransactionEvent"]["properties"].keys()
    assert {name for event in events for name in event} <= schemas["TraceEvent"]["properties"].keys()


def test_what_breaks_the_schema_is_refused(document: Any, broker: RunningBroker, subtests: pytest.Subtests) -> None:
    for operation in operations(document):
        if operation.label in TAKES_ANYTHING:
            continue
        with subtests.test(operation.label):
            calls(broker.url, operation, GenerationMode.NEGATIVE, {})
