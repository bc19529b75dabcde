"""Writes docs/api.md, the reference of the API for readers without a broker: `.venv/bin/python -m tools.api_page`.

It is made from the OpenAPI document, and so from the code, with the examples that a test has recorded.
"""

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

from mqbroker.embedded.commands import ROOT

PAGE = ROOT / "docs" / "api.md"
HEAD = """# The API

Every operation of `/v1`, with a request that a broker took and what it answered: made from the OpenAPI document, which
a broker has at `/v1/schema` and shows at `/docs`, where each can be tried. [Access](access.md) has the scope that each
needs.

A refusal is a problem document (RFC 9457): `{"type", "title", "status", "detail", "code"}`. Its `detail` names the
thing and the way out. These are the codes:

"""
# What a caller does about a code, where its sentence is not at hand.
WAYS_OUT = {
    "bad_request": "send one JSON object, each name once",
    "transaction_spans_cells": "name topics of one cell",
    "unauthenticated": "send `Authorization: Bearer mq_…` with a key that is neither revoked nor expired",
    "no_permission": "have the scope added at `/v1/api-keys`",
    "topic_forbidden": "send to a topic of yours that takes messages",
    "transactions_rejected": "the producer group, or the broker, begins no transactions: have that changed",
    "topic_not_exist": "`PUT /v1/topics/{topic}`",
    "transaction_not_found": "if its begin is under way, repeat the end behind its answer",
    "cell_not_exist": "name a cell of the installation",
    "message_not_found": "its segment may be gone",
    "group_not_exist": "`PUT` the group",
    "not_found": "the list of its kind has what there is",
    "request_timeout": "send it again: nothing was stored",
    "producer_group_wrong": "end it by the group that began it",
    "commit_log_offset_wrong": "leave the offset out, or give that of the begin's answer",
    "transaction_ended": "it was decided otherwise: read it",
    "transaction_discarded": "an operator resumes or resolves it",
    "already_delivered": "it is visible, and not to be recalled",
    "message_id_reused": "another message has the id: choose a new one",
    "receipt_expired": "the message is handed out again",
    "message_too_large": "keep to the limit that is named",
    "offset_out_of_range": "go on at the bounds that are named",
    "message_illegal": "mend the field that is named",
    "properties_too_large": "keep to the limit that is named",
    "topic_illegal": "choose another name",
    "batch_illegal": "one topic, and no delay, in a batch",
    "delay_illegal": "a level that there is, or a time within the limit",
    "filter_illegal": "mend the expression at the place that is named",
    "queue_illegal": "a queue that the topic has",
    "cell_illegal": "a cell of the topic",
    "rate_limited": "wait as long as `Retry-After` says",
    "system_busy": "wait as long as `Retry-After` says, and send it again: nothing was stored",
    "cell_away": "topics of other cells go on; send it again later",
    "topic_moved": "send it again",
    "sends_forbidden": "wait until the time that is named",
    "outcome_unknown": "send the same ids again: it is stored once",
}
Document = dict[str, Any]


def main() -> None:
    """Writes the page."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    # No database is asked.
    os.environ.setdefault("DATABASE_URL", "postgresql://127.0.0.1/none")
    import django

    django.setup()
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, of the code as it is."""
    from mqbroker.api.control.documents import document

    paths: Document = json.loads(document())["paths"]
    operations = [(method.upper(), path, one) for path, of in paths.items() for method, one in of.items()]
    return HEAD + "\n".join([*_codes(), "", *(line for one in operations for line in _operation(*one))]) + "\n"


def _codes() -> Iterator[str]:
    from mqbroker.errors import STATUS_OF_CODE

    yield "| status | code | what to do |"
    yield "|---|---|---|"
    for code, status in sorted(STATUS_OF_CODE.items(), key=lambda one: one[1]):
        yield f"| {status} | `{code}` | {WAYS_OUT[code]} |"


def _operation(method: str, path: str, operation: Document) -> Iterator[str]:
    yield f"## `{method} {path}`"
    yield operation.get("description") or operation.get("summary", "")
    yield ""
    parameters = operation.get("parameters", [])
    if parameters:
        yield "| parameter | in | |"
        yield "|---|---|---|"
        for one in parameters:
            yield f"| `{one['name']}` | {one['in']} | {_about(one)} |"
        yield ""
    yield from _example(method, path, operation, {one["name"]: one.get("example") for one in parameters})
    refusals = [status for status in operation["responses"] if status.isdigit() and int(status) >= 400]
    if refusals:
        yield f"Refused with {', '.join(refusals)}."
        yield ""


def _about(parameter: Document) -> str:
    schema, said = parameter.get("schema", {}), parameter.get("description", "")
    said = said or schema.get("description", "")
    parts = [said, "" if parameter.get("required") or "default" not in schema else f"Default: {schema['default']}."]
    return " ".join(part for part in parts if part and part != "Default: None.").replace("|", "\\|")


def _example(method: str, path: str, operation: Document, known: Document) -> Iterator[str]:
    given = [one for one in operation.get("parameters", []) if one["in"] == "query" and "example" in one]
    query = {one["name"]: one["example"] for one in given}
    named = {name: quote(str(value), safe="") for name, value in known.items() if value is not None}
    address = path.format_map(named) + (f"?{urlencode(query)}" if query else "")
    asked = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    yield "```http"
    yield f"{method} {address}"
    if asked is not None:
        yield json.dumps(asked, indent=2, ensure_ascii=False)
    yield "```"
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            example = answer.get("content", {}).get("application/json", {}).get("example")
            if example is not None:
                yield f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```"
    yield ""


if __name__ == "__main__":
    main()
