"""The W3C trace context of the calling code, and spans, by OpenTelemetry if it is installed; otherwise does nothing."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from mqbroker_client.core.hooks import Hook, HookContext

try:
    from opentelemetry import propagate, trace
except ImportError:  # provided by the extra `opentelemetry`
    propagate = trace = None  # type: ignore[assignment]  # OpenTelemetry is not installed


def current() -> str | None:
    """The `traceparent` of the calling code's span; None if the code runs in no span."""
    # Outside of a span, calling the propagators would take as long as encoding an end.
    if trace is None or not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent")


class OpenTelemetryHook:
    """Makes a span for each call and function, named by OpenTelemetry's conventions for messaging.

    The span of a handler or check is a child of the span that sent the message. If the program has no tracer provider,
    only handlers see a trace context.
    """

    def __call__(self, context: HookContext) -> AbstractContextManager[None] | None:
        if context.kind != "handle" and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return None
        return _span(context)


@contextmanager
def _span(context: HookContext) -> Iterator[None]:
    sent = _sent_with(context)
    # The parent of the span; None: the span of the calling code. A handler runs in no span, so a parent is passed for
    # it.
    parent = propagate.extract({"traceparent": sent}) if sent else None
    if context.kind == "handle" and parent is None:
        parent = propagate.extract({})
    tracer = trace.get_tracer("mqbroker_client")
    with tracer.start_as_current_span(_name(context), parent, _kind(context), _attributes(context)):
        if context.kind in ("send", "begin") and not any(message.traceparent for message in context.messages):
            context.traceparent = current()
        yield


def _sent_with(context: HookContext) -> str | None:
    if context.delivery is not None:
        return context.delivery.message.traceparent
    return context.messages[0].traceparent if context.kind == "check" else None


def _name(context: HookContext) -> str:
    verb = {"handle": "process", "end": str(context.state).lower()}.get(context.kind, context.kind)
    return f"{verb} {context.topic or context.group or ''}".rstrip()


def _kind(context: HookContext) -> "trace.SpanKind":
    kinds = {
        "send": trace.SpanKind.PRODUCER,
        "begin": trace.SpanKind.PRODUCER,
        "handle": trace.SpanKind.CONSUMER,
        "check": trace.SpanKind.CONSUMER,
    }
    return kinds.get(context.kind, trace.SpanKind.CLIENT)


def _attributes(context: HookContext) -> dict[str, str | int]:
    consumes = context.kind in ("receive", "ack", "nack", "return", "extend", "handle")
    given: dict[str, str | int | None] = {
        "messaging.system": "mqbroker",
        "messaging.operation.name": context.kind,
        "messaging.destination.name": context.topic,
        "messaging.consumer.group.name": context.group if consumes else None,
        "mqbroker.producer_group": None if consumes else context.group,
        "mqbroker.transaction_id": str(context.transaction_id) if context.transaction_id else None,
        "messaging.message.id": str(context.delivery.message.message_id) if context.delivery else None,
        "messaging.batch.message_count": len(context.messages) if len(context.messages) > 1 else None,
    }
    return {name: value for name, value in given.items() if value is not None}


#: Runs before the program's own hooks.
HOOKS: Sequence[Hook] = () if trace is None else (OpenTelemetryHook(),)
