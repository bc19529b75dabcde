"""One log format for all processes and libraries: one event with its fields per line, as text or as JSON."""

import logging
import re
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

FORMS = ("text", "json")
APPS = (
    "tools",
    "mqbroker",
    "console",
    "transactions",
    "delivery",
    "analytics",
    "scheduling",
    "webhooks",
    "access",
    "store",
)
# PostgreSQL's error shows the row that broke a constraint. The row may contain a message body, which no log may show.
ROW = re.compile(r"(?<=Failing row contains )\(.*\)\.$", re.MULTILINE | re.DOTALL)

fields_as_text = structlog.processors.LogfmtRenderer(bool_as_flag=False)


def configure(form: str) -> dict[str, Any]:
    """Has structlog write through the standard library's loggers; returns their configuration, for Django."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"events": {"()": "mqbroker.logs.formatter", "form": form}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "events"}},
        "root": {"handlers": ["console"], "level": "WARNING"},
        "loggers": {
            **{app: {"level": "INFO"} for app in APPS},
            # A refused request is the caller's business, so Django's warnings about it are not logged.
            "django.request": {"level": "ERROR"},
        },
    }


def formatter(form: str) -> logging.Formatter:
    """Formats a record of any logger as one event."""
    ending: list[Processor] = [as_json] if form == "json" else [as_text]
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            describe,
            without_traces_of_callers,
            structlog.processors.format_exc_info,
            without_rows,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *ending,
        ]
    )


def take_over() -> None:
    """Has warnings and uncaught exceptions of this process logged as events, too."""
    logging.captureWarnings(True)
    sys.excepthook = log_uncaught
    threading.excepthook = lambda args: log_uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def log_uncaught(kind: type[BaseException], problem: BaseException | None, trace: TracebackType | None = None) -> None:
    """Logs an exception that Python would print."""
    if problem is None or issubclass(kind, KeyboardInterrupt | SystemExit):
        return
    logging.getLogger(__name__).critical("uncaught exception", exc_info=(kind, problem, trace))


def describe(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Orders an event: time, level, logger, the sentence on one line, then its fields."""
    record = event["_record"]
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    what = " ".join(str(event.pop("event")).split())
    return {"at": at, "level": record.levelname.lower(), "logger": record.name, "event": what, **event}


def without_traces_of_callers(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Removes traces about requests that Django refuses unread: any stranger could fill the log with traces."""
    if event["logger"].startswith("django.security."):
        event.pop("exc_info", None)
    return event


def without_rows(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Removes stored rows from the database's errors."""
    for name in ("event", "exception"):
        if isinstance(event.get(name), str):
            event[name] = ROW.sub("(left out).", event[name])
    return event


def as_json(logger: WrappedLogger, method: str, event: EventDict) -> str:
    return cast(str, structlog.processors.JSONRenderer(default=str)(logger, method, event))


def as_text(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """`2026-01-31T12:00:00.000Z warning store.log: what happened field=value`; an exception's trace below."""
    exception = event.pop("exception", "")
    head = f"{event.pop('at')} {event.pop('level')} {event.pop('logger')}: {event.pop('event')}"
    line = f"{head} {fields_as_text(logger, method, event)}".rstrip()
    return f"{line}\n{exception}" if exception else line


class NamesRequest(logging.Filter):
    """Adds the request's id to Django's records of a failed request; the answer has the id as X-Request-Id."""

    def filter(self, record: logging.LogRecord) -> bool:
        scope = getattr(getattr(record, "request", None), "scope", {})
        if "request_id" in scope and not hasattr(record, "request_id"):
            record.__dict__["request_id"] = scope["request_id"]
            record.msg = f"{record.getMessage()} (request {scope['request_id']})"
            record.args = ()
        return True
