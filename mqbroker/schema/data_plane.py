"""Adds the data plane to drf-spectacular's document: paths from the routes, schemas from msgspec."""

from typing import Any

import msgspec
from django.conf import settings

from mqbroker.api.bulk_operations import Given
from mqbroker.api.bulks import MAX_OPERATIONS
from mqbroker.api.router import PARAMETER, Route, View
from mqbroker.api.routes import routes
from mqbroker.errors import Problem
from mqbroker.schema.calls import CALLS, Call, Operations
from mqbroker.schema.rules import NAME, narrow

REF = "#/components/schemas/{name}"
PROBLEM = {"$ref": "#/components/responses/Problem"}
# HTTP statuses of refusals that every call may return, in addition to the call's own statuses.
COMMON_PROBLEMS = (400, 401, 403, 422, 503)
# HTTP statuses of refusals that every call with a body may return.
BODY_PROBLEMS = (408, 413, 415)
PATH_TYPES: dict[str, dict[str, Any]] = {"int": {"type": "integer", "minimum": 0}, "str": {"type": "string"}}
Document = dict[str, Any]

SECURITY: list[Document] = [{"bearer": []}]


def add_data_plane(result: Document, generator: Any, request: Any, public: bool) -> Document:
    """A postprocessing hook of drf-spectacular: returns the whole document; errors of both planes have the form
    Problem.
    """
    structs = [type_ for call in CALLS.values() for type_ in (call.given, *call.answers.values()) if type_ is not None]
    types = [Given if type_ is Operations else type_ for type_ in (*structs, Problem)]
    refs, schemas = msgspec.json.schema_components(types, ref_template=REF)
    ref_of = dict(zip(types, refs, strict=True))
    components = result.setdefault("components", {})
    components.setdefault("schemas", {}).update(narrow(schemas, settings))
    components["responses"] = {"Problem": _problem(ref_of[Problem])}
    for route in routes:
        path = "/" + PARAMETER.sub(r"{\2}", route.pattern)
        for method, view in route.views.items():
            result["paths"].setdefault(path, {})[method.lower()] = _operation(route, view, ref_of)
    for path, operations in result["paths"].items():
        for operation in operations.values():
            _narrow_names(operation)
            _add_problems(path, operation)
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


def _operation(route: Route, view: View, ref_of: dict[Any, Document]) -> Document:
    call = CALLS.get(view) or Call(summary=str(view.__doc__), answers={200: None})
    operation: Document = {
        "operationId": view.__name__,
        "summary": call.summary,
        "description": call.description,
        "tags": [route.pattern.split("/")[1]],
        "security": SECURITY,
        "parameters": [*_path_parameters(route), *_query_parameters(call)],
        "responses": {str(status): _answer(ref_of.get(shape)) for status, shape in call.answers.items()},
    }
    if call.given is not None:
        limit = f"At most {route.most_bytes:,} bytes of JSON."
        body = {"description": limit, "required": not call.may_be_empty}
        operation["requestBody"] = _json(_given(call, ref_of)) | body
    for status in call.problems:
        operation["responses"][str(status)] = PROBLEM
    return operation


def _given(call: Call, ref_of: dict[Any, Document]) -> Document:
    if call.given is not Operations:
        return ref_of[call.given]
    operations = {"type": "array", "items": ref_of[Given], "minItems": 1, "maxItems": MAX_OPERATIONS}
    return {
        "type": "object",
        "properties": {"operations": operations},
        "required": ["operations"],
        "additionalProperties": False,
    }


def _path_parameters(route: Route) -> list[Document]:
    return [
        {"name": name, "in": "path", "required": True, "schema": PATH_TYPES[kind]} for kind, name in route.parameters
    ]


def _query_parameters(call: Call) -> list[Document]:
    return [
        {"name": name, "in": "query", "schema": schema, "required": name in call.required_query}
        for name, schema in call.query.items()
    ]


def _answer(ref: Document | None) -> Document:
    return {"description": ""} if ref is None else {"description": "", **_json(ref)}


def _json(schema: Document) -> Document:
    return {"content": {"application/json": {"schema": schema}}}


def _problem(ref: Document) -> Document:
    return {"description": "Refused: `detail` says why.", "content": {"application/problem+json": {"schema": ref}}}


def _narrow_names(operation: Document) -> None:
    """Adds the rule for names to the parameters in a path."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path" and parameter["name"] in ("topic", "group"):
            parameter["schema"] = NAME


def _add_problems(path: str, operation: Document) -> None:
    """Adds the errors to an operation. All errors have the same form; `default` stands for unexpected ones."""
    responses = operation["responses"]
    for answer in responses.values():
        if answer is not PROBLEM:
            answer["description"] = answer["description"] or "Done."
    common = (*COMMON_PROBLEMS, 404) if "{" in path else COMMON_PROBLEMS
    if "requestBody" in operation:
        common = (*common, *BODY_PROBLEMS)
    for status in common if operation.get("security") else ():
        responses.setdefault(str(status), PROBLEM)
    operation["responses"] = {**dict(sorted(responses.items())), "default": PROBLEM}
