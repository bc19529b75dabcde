"""Writes docs/api.md, the reference of the API: `.venv/bin/python -m tools.generate.api_page`.

The page is made from the OpenAPI document, which comes from the code, and from examples that a test has recorded.
"""

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

from mqbroker.embedded.commands import ROOT

PAGE = ROOT / "docs" / "api.md"
HEAD = """# The API

Every call of `/v1`, with its fields, a request and the broker's answer. Typed from top to bottom to a new `./mq up`,
with your ids in place of the page's, each request succeeds; only resume and
resolve of `/v1/discarded` need a transaction whose checks were given up. Lists in answers are cut. The page is
generated from the OpenAPI document, which a broker has at `/v1/schema` and shows at `/docs`. [Access](access.md)
lists the scope that each call needs.

A *name* has 1 to 127 letters, digits and `%`, `|`, `_`, `-`; a *time* has a zone, such as `2026-01-31T12:00:00Z`. An
empty default means that the field is left out, or keeps its value. A change applies to every request after its answer.
Lists come in pages of at most `limit` results (100 by default); `cursor` is the `next` of the previous page.

A refusal is a problem document (RFC 9457): `{"type", "title", "status", "detail", "code"}`. Its `detail` names the
refused thing and says what to do. Every call except `/healthz` and `/readyz` may be refused with 400, 401, 403, 422 and
503, a call with a body also with 408, 413 and 415, a call with a name in its path with
404. Further statuses stand below each call. The codes:

"""
# Statuses of all calls, and of all calls with a body. The page explains these only once.
COMMON = {400, 401, 403, 422, 503}
OF_BODIES = {408, 413, 415}
# An object with fewer fields is shown at each call; a larger object only at the first call.
FEWEST_FIELDS = 6
Document = dict[str, Any]
# Where the page shows an object for the first time, in words. The key of the dictionary is the object's field names.
Shown = dict[frozenset[str], str]
# Calls whose answers have lists, of which later examples use more than the first element.
WHOLE = ("POST /v1/bulk", "POST /v1/consumer-groups/{group}/receive")
MOST_CHARACTERS = 110
AT_ONCE = "The change applies to every request after the answer."


def main() -> None:
    """Writes the page."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    # No database is needed for the page.
    os.environ.setdefault("DATABASE_URL", "postgresql://127.0.0.1/none")
    import django

    django.setup()
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page for the present code."""
    from mqbroker.api.control.documents import document
    from mqbroker.schema.fields import Tables

    whole: Document = json.loads(document())
    tables = Tables(whole["components"]["schemas"])
    shown: Shown = {}
    lines = [line for label, one in _operations(whole).items() for line in _operation(label, one, shown, tables)]
    return HEAD + "\n".join([*_codes(), "", *lines]) + "\n"


def _operations(whole: Document) -> Document:
    """The operations in the order of the examples: each example uses objects that earlier examples have created."""
    from mqbroker.schema.examples import examples

    found = {f"{method.upper()} {path}": one for path, of in whole["paths"].items() for method, one in of.items()}
    order = [label for label in found if label not in examples()] + list(examples())
    return {label: found[label] for label in order}


def _codes() -> Iterator[str]:
    from mqbroker.errors import STATUS_OF_CODE
    from mqbroker.schema.ways_out import WAYS_OUT

    yield "|status|code|what to do|"
    yield "|---|---|---|"
    for code, status in sorted(STATUS_OF_CODE.items(), key=lambda one: one[1]):
        yield f"|{status}|`{code}`|{WAYS_OUT[code]}|"


def _operation(label: str, operation: Document, shown: Shown, tables: Any) -> Iterator[str]:
    method, _, path = label.partition(" ")
    yield f"## `{label}`"
    said = operation.get("description") or operation.get("summary", "")
    # These texts are left out, because the page has them once, at its beginning.
    yield said.replace(AT_ONCE, "").strip()
    yield ""
    parameters = operation.get("parameters", [])
    # Parameters of the path are in the path, and the page explains cursor and limit of lists once.
    explained = [(one, said) for one in parameters if (said := _about(one)) and one["name"] not in ("cursor", "limit")]
    if explained:
        yield "|parameter|in||"
        yield "|---|---|---|"
        for one, said in explained:
            yield f"|`{one['name']}`|{one['in']}|{said}|"
        yield ""
    yield from tables.of(label, operation)
    yield from _request(method, path, operation, {one["name"]: one.get("example") for one in parameters})
    yield from _answers(label, operation, shown)
    refusals = {int(status) for status in operation["responses"] if status.isdigit() and int(status) >= 400}
    common = COMMON | OF_BODIES | ({404} if "{" in path else set())
    if more := sorted(refusals - common):
        yield f"Also {', '.join(map(str, more))}."
        yield ""


def _about(parameter: Document) -> str:
    schema, said = parameter.get("schema", {}), parameter.get("description", "")
    said = said or schema.get("description", "")
    parts = [said, "" if parameter.get("required") or "default" not in schema else f"Default: {schema['default']}."]
    return " ".join(part for part in parts if part and part != "Default: None.").replace("|", "\\|")


def _request(method: str, path: str, operation: Document, known: Document) -> Iterator[str]:
    given = [one for one in operation.get("parameters", []) if one["in"] == "query" and "example" in one]
    query = {one["name"]: one["example"] for one in given}
    named = {name: quote(str(value), safe="") for name, value in known.items() if value is not None}
    address = path.format_map(named) + (f"?{urlencode(query)}" if query else "")
    asked = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    yield "```http"
    yield f"{method} {address}"
    if asked is not None:
        yield _written(asked)
    yield "```"


def _answers(call: str, operation: Document, shown: Shown) -> Iterator[str]:
    """The lines about a call's answers. An object that an earlier call shows is only named with a link to that call."""
    for status, answer in operation["responses"].items():
        example = answer.get("content", {}).get("application/json", {}).get("example")
        if not status.startswith("2") or example is None:
            continue
        found = example.get("results") if isinstance(example, dict) else None
        thing = found[0] if found and isinstance(found, list) else example
        fields = frozenset(thing) if isinstance(thing, dict) else frozenset()
        if len(fields) >= FEWEST_FIELDS and fields in shown:
            yield f"\n{'Each of `results`' if thing is not example else 'The answer'} is like {shown[fields]}."
            continue
        owner = "the answer to" if thing is example else "an element of the answer to"
        shown.setdefault(fields, f"{owner} `{call}`")
        yield f"```json\n{_written(example if call in WHOLE else _cut(example))}\n```"
    yield ""


def _written(value: Any, indent: int = 0) -> str:
    """JSON in which a value stands on several lines only if it is too long for one line."""
    flat = json.dumps(value, ensure_ascii=False, separators=(", ", ":"))
    if len(flat) + indent <= MOST_CHARACTERS or not isinstance(value, dict | list) or not value:
        return flat
    begin = "\n" + " " * (indent + 1)
    if isinstance(value, list):
        return "[" + ("," + begin).join(_written(one, indent + 1) for one in value) + "]"
    parts = [f"{json.dumps(name)}:{_written(one, indent + 1)}" for name, one in value.items()]
    lines = [parts[0]]
    for part in parts[1:]:
        last = lines[-1].rpartition("\n")[2]
        if len(last) + len(part.partition("\n")[0]) + indent < MOST_CHARACTERS:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return "{" + ("," + begin).join(lines) + "}"


def _cut(example: Any) -> Any:
    """An example answer in which lists of objects are cut to their first element."""
    if isinstance(example, dict):
        return {name: _cut(value) for name, value in example.items()}
    if isinstance(example, list) and example and isinstance(example[0], dict):
        return [_cut(example[0])]
    return example


if __name__ == "__main__":
    main()
