"""The OpenAPI document, and whether both planes do as it says."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from schemathesis import Case, GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from embedded import commands
from tests.broker import characters
from tests.broker.running import API_KEY, RunningBroker
from tests.control.operators import Operator

CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
# A bulk takes any operation and judges each on its own; without parameters there is nothing that could break a rule.
TAKES_ANYTHING = ("POST /v1/bulk", "GET /healthz", "GET /readyz")
# The same requests with each run: the seed is the test itself.
BOUNDED = settings(
    max_examples=5,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
NOBODY = "http://127.0.0.1:9/checks"


@pytest.fixture(scope="session")
def document(broker: RunningBroker) -> Any:
    """The OpenAPI document, as the broker serves it."""
    return Operator(broker.url, API_KEY).reads("/v1/schema")


@pytest.fixture
def known(operator: Operator) -> dict[str, Any]:
    """What the parameters of paths can name: one of each resource, all of them there."""
    name = characters.name("fuzzed")
    begun = operator.make("/v1/transactions", producer_group=name, topic=name, body="order").document
    operator.make(f"/v1/consumer-groups/{name}/receive", topic=name)
    endpoint = operator.make(f"/v1/producer-groups/{name}/endpoints", url=NOBODY).document
    key = operator.make("/v1/api-keys", name=name, scopes=["manage"]).document
    return {
        "topic": name,
        "group": name,
        "queue_id": 0,
        "transaction_id": begun["transaction_id"],
        "endpoint_id": endpoint["id"],
        "name_or_id": key["name"],
    }


def test_the_document_is_openapi_3_1_of_both_planes(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    calls = {(method, path) for path, found in document["paths"].items() for method in found}
    assert {("put", "/v1/topics/{topic}"), ("post", "/v1/transactions"), ("get", "/v1/transactions")} <= calls


def test_the_document_is_valid_and_made_without_a_warning(broker: RunningBroker) -> None:
    words = commands.manage("spectacular", "--validate", "--fail-on-warn", "--file", os.devnull)

    made = subprocess.run(words, env=broker.environment, cwd=commands.ROOT, capture_output=True, text=True)

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


def test_every_call_does_as_the_schema_says(
    document: Any, broker: RunningBroker, known: dict[str, Any], subtests: pytest.Subtests
) -> None:
    for operation in operations(document):
        with subtests.test(operation.label):
            calls(broker, operation, GenerationMode.POSITIVE, CHECKS, known)


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
            calls(broker, operation, GenerationMode.NEGATIVE, (*CHECKS, negative_data_rejection), {})


def operations(document: Any) -> list[Any]:
    """The operations of the document."""
    found = schemathesis.openapi.from_dict(document).get_all_operations()
    return [operation.ok() for operation in found if isinstance(operation, Ok)]


def calls(
    broker: RunningBroker,
    operation: APIOperation[Any, Any, Any, Any],
    mode: GenerationMode,
    checks: Sequence[CheckFunction],
    known: dict[str, Any],
) -> None:
    """Makes calls of an operation and holds each answer to the checks."""

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Case[Any]) -> None:
        steer(case, known)
        headers = {"Authorization": f"Bearer {API_KEY}"}
        case.call_and_validate(base_url=broker.url, headers=headers, checks=list(checks))

    call()


def steer(case: Case[Any], known: dict[str, Any]) -> None:
    """Names what is there, where nothing is deleted; waits for nothing, and calls nobody."""
    if case.method != "DELETE":
        case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
    for fields in (case.body, case.query):
        if isinstance(fields, dict) and "wait_seconds" in fields:
            fields["wait_seconds"] = 0
        if isinstance(fields, dict) and isinstance(fields.get("url"), str):
            fields["url"] = NOBODY
