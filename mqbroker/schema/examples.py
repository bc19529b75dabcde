"""An example of each operation: a request and the broker's answer, as a test recorded them."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

RECORDED = Path(__file__).with_name("examples.json")
Document = dict[str, Any]


class Example(msgspec.Struct, omit_defaults=True):
    """A request of an operation, and the answer to it. `request` or `answer` is None if there is no body."""

    status: int
    path: Document = {}
    query: Document = {}
    request: Any = None
    answer: Any = None


@cache
def examples() -> dict[str, Example]:
    """The examples by operation, such as `POST /v1/messages`."""
    return msgspec.json.decode(RECORDED.read_bytes(), type=dict[str, Example])


def add_examples(result: Document, generator: Any, request: Any, public: bool) -> Document:
    """A postprocessing hook of drf-spectacular: puts each example where the page fills its forms from."""
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            example = examples().get(f"{method.upper()} {path}")
            if example is not None:
                _add(operation, example)
    return result


def _add(operation: Document, example: Example) -> None:
    known = {**example.path, **example.query}
    operation["parameters"] = [
        {**one, "example": known[one["name"]]} if one["name"] in known else one
        for one in operation.get("parameters", ())
    ]
    contents = [(operation.get("requestBody", {}), example.request)]
    contents.append((operation["responses"].get(str(example.status), {}), example.answer))
    for place, value in contents:
        if value is not None and "application/json" in place.get("content", {}):
            place["content"]["application/json"]["example"] = value
