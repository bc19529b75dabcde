"""Fuzzing: requests that the schema makes up, and what holds of every answer; `./mq fuzz --minutes 5` runs it so long.

Each operation is first reached with a request that it takes, on a broker with every kind of thing in it. Then come
requests that the schema makes up, right ones and wrong ones, seed after seed until the time is over. Every answer has
to be one that the schema names; none may be a 5xx.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.broker import databases
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document
from tests.control.conftest import SETTINGS
from tests.control.stock import NOWHERE, Stock

Operation = APIOperation[Any, Any, Any, Any]
CHECKS: tuple[CheckFunction, ...] = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
# A bulk takes any operation and judges each on its own; without parameters there is nothing that could break a rule.
TAKES_ANYTHING = ("POST /v1/bulk", "GET /healthz", "GET /readyz")
MODES = {GenerationMode.POSITIVE: CHECKS, GenerationMode.NEGATIVE: (*CHECKS, negative_data_rejection)}
# Seconds in which one request of a run must be answered.
TIMEOUT_SECONDS = 60


def operations(document: Any) -> list[Operation]:
    """The operations of an OpenAPI document."""
    found = schemathesis.openapi.from_dict(document).get_all_operations()
    return [operation.ok() for operation in found if isinstance(operation, Ok)]


def calls(
    url: str, operation: Operation, mode: GenerationMode, known: Document, *, seeded: int = 0, examples: int = 3
) -> Counter[int]:
    """Makes calls of an operation and holds each answer to the checks; how many answers had each status.

    The same requests with the same seed. Raises what the checks raise.
    """
    statuses: Counter[int] = Counter()

    @seed(seeded)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Case[Any]) -> None:
        steer(case, known)
        statuses[validated(url, case, MODES[mode])] += 1

    call()
    return statuses


def validated(url: str, case: Case[Any], checks: Sequence[CheckFunction]) -> int:
    """The status of an answer that passes the checks."""
    headers = {"Authorization": f"Bearer {API_KEY}"}
    return case.call_and_validate(
        base_url=url, headers=headers, checks=list(checks), timeout=TIMEOUT_SECONDS
    ).status_code


def steer(case: Case[Any], known: Document) -> None:
    """Names what is there, where nothing is deleted; waits for nothing, and causes no call of an endpoint."""
    if case.method != "DELETE":
        case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
    for fields in (case.body, case.query):
        # One that is out of range is to be refused, and stays as it is.
        if isinstance(fields, dict) and isinstance(wait := fields.get("wait_seconds"), int | float) and 0 <= wait <= 20:
            fields["wait_seconds"] = 0
        if isinstance(fields, dict) and isinstance(fields.get("url"), str):
            fields["url"] = NOWHERE


def reached(url: str, operation: Operation, stock: Stock) -> int:
    """The status of a request that the operation takes; its answer passes the checks."""
    request = stock.request(operation.label)
    named = {name: request.path[name] for name in request.path if f"{{{name}}}" in operation.path}
    body = {} if request.body is None else {"body": request.body, "media_type": "application/json"}
    return validated(url, operation.Case(path_parameters=named, query=dict(request.query), **body), CHECKS)


class Run:
    """One run against a broker: the statuses by operation, and what was found."""

    def __init__(self, broker: RunningBroker) -> None:
        self._url = broker.url
        self._stock = Stock(broker)
        self._operations = operations(self._stock.operator.reads("/v1/schema"))
        self.statuses: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.findings: dict[str, str] = {}

    def lasts(self, seconds: float) -> None:
        """Reaches each operation, then makes requests up until the time is over."""
        end = time.monotonic() + seconds
        for operation in self._operations:
            self._try(operation, self._reached)
            if not any(200 <= status < 300 for status in self.statuses[operation.label]):
                self.findings.setdefault(f"{operation.label} is not reached", str(self.statuses[operation.label]))
        for number in count():
            for operation in self._operations:
                for mode in MODES:
                    if time.monotonic() > end:
                        return
                    if mode is GenerationMode.POSITIVE or operation.label not in TAKES_ANYTHING:
                        self._try(operation, partial(self._calls, mode, number))

    def _reached(self, operation: Operation) -> Counter[int]:
        return Counter([reached(self._url, operation, self._stock)])

    def _calls(self, mode: GenerationMode, number: int, operation: Operation) -> Counter[int]:
        known = self._stock.known if mode is GenerationMode.POSITIVE else {}
        return calls(self._url, operation, mode, known, seeded=number)

    def _try(self, operation: Operation, work: Callable[[Operation], Counter[int]]) -> None:
        try:
            self.statuses[operation.label] += work(operation)
        except (Exception, FailureGroup) as problem:  # noqa: BLE001  # whatever is found is kept, and the run goes on
            self.findings.setdefault(f"{operation.label}: {type(problem).__name__}", str(problem))

    def report(self) -> str:
        """The statuses of each operation, and each finding once."""
        lines = [
            f"{sum(found.values()):6} {label}: {', '.join(f'{one} ×{found[one]}' for one in sorted(found))}"
            for label, found in sorted(self.statuses.items())
        ]
        total = sum(map(Counter.total, self.statuses.values()))
        findings = [f"FOUND {what}\n{text}" for what, text in self.findings.items()]
        sums = f"{total} requests, {len(self._operations)} operations, {len(findings)} findings"
        return "\n".join([*lines, *findings, sums])


def main(words: list[str]) -> int:
    """Runs it on a broker of its own."""
    parser = argparse.ArgumentParser("mq fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    given_words = parser.parse_args(words)
    with databases.fresh() as database_url, tempfile.TemporaryDirectory(prefix="mqfuzz-") as folder:
        broker = RunningBroker(Path(folder), database_url, os.environ["REDIS_URL"], SETTINGS, tasks=False)
        broker.prepare()
        with broker:
            run = Run(broker)
            run.lasts(given_words.minutes * 60)
            print(run.report(), flush=True)
            log = broker.log()
    failed = "Traceback" in log
    print(log[-3000:] if failed else "the broker's log has no failure", flush=True)
    return 1 if run.findings or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
