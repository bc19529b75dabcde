"""The W3C trace context of the calling code, by OpenTelemetry where that is installed; without it, nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

try:
    from opentelemetry import propagate, trace
except ImportError:  # the extra `opentelemetry` brings it
    propagate = trace = None  # type: ignore[assignment]  # two modules, or neither


def current() -> str | None:
    """The `traceparent` of the span that the calling code is in."""
    # Outside of a span, to ask the propagators would cost as much as to encode an end.
    if trace is None or not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent")


@contextmanager
def handling(traceparent: str | None, topic: str, group: str) -> Iterator[None]:
    """A span for the handling of a message, below the one that sent it."""
    if trace is None:
        yield
        return
    sent = propagate.extract({"traceparent": traceparent} if traceparent else {})
    attributes = {
        "messaging.system": "mqbroker",
        "messaging.destination.name": topic,
        "messaging.consumer.group.name": group,
    }
    tracer = trace.get_tracer("mqbroker_client")
    with tracer.start_as_current_span(f"process {topic}", sent, trace.SpanKind.CONSUMER, attributes):
        yield
