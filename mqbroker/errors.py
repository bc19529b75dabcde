"""Turns a refusal of the domain into an RFC 9457 problem document, on both planes."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
import psycopg
from django.core.exceptions import DisallowedHost, PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults
from msgspec import Meta
from rest_framework import exceptions
from rest_framework.response import Response

from store import errors
from store.db import patience
from store.db.connections import away, is_read_only

Met = TypeVar("Met", bound=Exception)

# The errors of a database that is away: Django has its own error classes.
AWAY = (OperationalError, InterfaceError, psycopg.OperationalError)
STATUS_OF_CODE = {
    "bad_request": 400,
    "transaction_spans_cells": 400,
    "unauthenticated": 401,
    "no_permission": 403,
    "topic_forbidden": 403,
    "transactions_rejected": 403,
    "topic_not_exist": 404,
    "transaction_not_found": 404,
    "cell_not_exist": 404,
    "message_not_found": 404,
    "group_not_exist": 404,
    "not_found": 404,
    "request_timeout": 408,
    "producer_group_wrong": 409,
    "commit_log_offset_wrong": 409,
    "transaction_ended": 409,
    "transaction_discarded": 409,
    "already_delivered": 409,
    "message_id_reused": 409,
    "receipt_expired": 410,
    "message_too_large": 413,
    "offset_out_of_range": 416,
    "message_illegal": 422,
    "properties_too_large": 422,
    "topic_illegal": 422,
    "batch_illegal": 422,
    "delay_illegal": 422,
    "filter_illegal": 422,
    "queue_illegal": 422,
    "cell_illegal": 422,
    "rate_limited": 429,
    "system_busy": 503,
    "cell_away": 503,
    "topic_moved": 503,
    "sends_forbidden": 503,
    "outcome_unknown": 503,
}
# Codes for statuses that no refusal of the domain has.
CODE_OF_STATUS = {
    401: "unauthenticated",
    403: "no_permission",
    404: "not_found",
    405: "method_not_allowed",
    415: "unsupported_media_type",
}
PROBLEM_TYPE = "application/problem+json"
BUSY_SECONDS = 1
# A refusal quotes at most this many characters of a Host header.
MOST_OF_A_HOST = 100
UNKNOWN = (
    "The database stopped answering during or after the commit of this request: the change may be stored. "
    "Read the object again, and repeat the request if the change is missing."
)

Code = Annotated[str, Meta(description="A stable word for what happened.")]


class Problem(msgspec.Struct):
    """An error (RFC 9457). `detail` names the thing, its state and the way out."""

    type: str
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    detail: str
    code: Code


def problem(code: str, status: int, detail: str) -> Problem:
    """Makes the problem document for a code."""
    return Problem(
        type=f"urn:mqbroker:problem:{code}",
        title=code.replace("_", " ").capitalize(),
        status=status,
        detail=detail,
        code=code,
    )


def problem_of(refusal: errors.Refusal) -> Problem:
    """The problem document of a refusal, without fields that only this refusal has."""
    return problem(refusal.code, status_of(refusal), refusal.detail)


def document(refusal: errors.Refusal) -> dict[str, object]:
    """The whole problem document of a refusal."""
    return {**msgspec.structs.asdict(problem_of(refusal)), **refusal.extra}


def status_of(refusal: errors.Refusal) -> int:
    """The HTTP status of a refusal."""
    return STATUS_OF_CODE[refusal.code]


def headers_of(refusal: errors.Refusal) -> dict[str, str]:
    """The headers of a refusal's answer besides its content type."""
    if isinstance(refusal, errors.RateLimited | errors.SendsForbidden):
        return {"Retry-After": str(refusal.retry_after_seconds)}
    if status_of(refusal) == 503:
        return {"Retry-After": str(BUSY_SECONDS)}
    if refusal.code == "unauthenticated":
        return {"WWW-Authenticate": "Bearer"}
    return {}


def of_request(problem: Met) -> Met | errors.OutcomeUnknown:
    """The problem document of an error. After a commit was sent, no document may say that nothing was stored."""
    if isinstance(problem, errors.SystemBusy) and patience.has_committed():
        return errors.OutcomeUnknown(UNKNOWN)
    return problem


def answer(refusal: errors.Refusal) -> HttpResponse:
    """Django's answer to a refusal."""
    return HttpResponse(
        msgspec.json.encode(document(refusal)),
        status=status_of(refusal),
        content_type=PROBLEM_TYPE,
        headers=headers_of(refusal),
    )


def problem_of_status(status: int, detail: str) -> Problem:
    """A problem document for an HTTP status (405, 406, 500) that no refusal of the domain has."""
    code = CODE_OF_STATUS.get(status, "internal_error" if status >= 500 else "bad_request")
    return problem(code, status, detail)


def answer_drf(problem_met: Exception, context: object) -> Response | None:
    """DRF's exception handler: every error of the control plane as a problem document."""
    refusal = refusal_of(problem_met)
    if refusal is not None:
        return Response(document(refusal), status_of(refusal), headers=headers_of(refusal), content_type=PROBLEM_TYPE)
    if isinstance(problem_met, exceptions.APIException):
        found = problem_of_status(problem_met.status_code, str(problem_met.detail))
    elif isinstance(problem_met, Http404):
        found = problem_of_status(404, "Nothing is here.")
    elif isinstance(problem_met, PermissionDenied):
        found = problem_of_status(403, "This is not allowed.")
    else:
        return None
    return Response(msgspec.structs.asdict(found), found.status, content_type=PROBLEM_TYPE)


def refusal_of(problem_met: Exception) -> errors.Refusal | None:
    """The refusal with the same meaning as an exception of Django, DRF or psycopg; None if there is none."""
    if isinstance(problem_met, errors.Refusal):
        return of_request(problem_met)
    if isinstance(problem_met, AWAY) or is_read_only(problem_met):
        return of_request(away(problem_met))
    if isinstance(problem_met, exceptions.ValidationError):
        return errors.MessageIllegal(sentence(problem_met.detail))
    if isinstance(problem_met, (exceptions.NotAuthenticated, exceptions.AuthenticationFailed)):
        return errors.Unauthenticated(str(problem_met.detail))
    return None


def sentence(detail: Any) -> str:
    """DRF's nested validation errors as one sentence: `field: what is wrong; field: …`."""
    if isinstance(detail, dict):
        return "; ".join(f"{field}: {sentence(inner)}" for field, inner in detail.items())
    if isinstance(detail, list):
        return " ".join(sentence(inner) for inner in detail)
    return str(detail)


def answer_status(status: int, detail: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """The answer with an HTTP status that no refusal of the domain has."""
    body = msgspec.json.encode(problem_of_status(status, detail))
    return HttpResponse(body, status=status, content_type=PROBLEM_TYPE, headers=headers)


def is_of_console(request: HttpRequest) -> bool:
    """Whether a browser requested a page of the console; then an error is also answered as a page."""
    return request.path.startswith("/console")


def answer_bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's answer to a request that it refuses before reading it, for example with a Host
    header of another server.
    """
    if is_of_console(request):
        return defaults.bad_request(request, exception)
    if isinstance(exception, DisallowedHost):
        host = request.META.get("HTTP_HOST", "")[:MOST_OF_A_HOST]
        return answer_status(400, f"Host {host!r} is not one of MQBROKER_ALLOWED_HOSTS: call by one, or add this one.")
    return answer_status(400, f"The request cannot be taken: {type(exception).__name__}.")


def answer_forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's answer to a forbidden request."""
    if is_of_console(request):
        return defaults.permission_denied(request, exception)
    return answer_status(403, "This is not allowed.")


def answer_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's answer to a path that does not exist."""
    if is_of_console(request):
        return defaults.page_not_found(request, exception)
    return answer_status(404, f"There is no {request.path[:200]}: /docs lists the paths.")


def answer_failure(request: HttpRequest) -> HttpResponse:
    """Django's answer when the broker itself failed, or its database is away or read-only."""
    failure = sys.exc_info()[1]
    refusal = refusal_of(failure) if isinstance(failure, Exception) else None
    if is_of_console(request):
        return defaults.server_error(request) if refusal is None else page(refusal)
    if refusal is not None:
        return answer(refusal)
    return answer_status(500, "The broker failed: its log has the details.")


def page(refusal: errors.Refusal) -> HttpResponse:
    """The answer to an error as a page for a browser, made without reading the database, not even the session."""
    html = render_to_string("console/refused.html", {"problem": problem_of(refusal)})
    return HttpResponse(html, status=status_of(refusal), headers=headers_of(refusal))
