"""The paths of the data plane, with the view of each method; any other method is the control plane's."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from mqbroker.api import consumers, limits, lookup, operators, producers
from mqbroker.api.asgi_handler import Limit, View


def by_method(route: str, limit: Limit = limits.call, **views: View) -> URLPattern:
    """A path whose methods have views of their own; a request may have as many bytes as `limit` says."""

    def never_called(request: HttpRequest, **named: Any) -> HttpResponse:
        raise AssertionError("the lean handler picks the view by the method")

    never_called.views = views  # type: ignore[attr-defined]  # read by the lean handler
    never_called.limit = limit  # type: ignore[attr-defined]  # as above
    return path(route, never_called)


routes = [
    by_method("v1/messages", limits.message, POST=producers.send, GET=lookup.messages_of_topic),
    by_method("v1/messages/batch", limits.batch, POST=producers.send_batch),
    by_method("v1/messages/recall", POST=producers.recall),
    by_method("v1/messages/<str:message_id>", GET=lookup.message),
    by_method("v1/messages/<str:message_id>/trace", GET=lookup.trace),
    by_method("v1/transactions", limits.transaction, POST=producers.begin),
    by_method("v1/transactions/<str:transaction_id>/end", POST=producers.end),
    by_method("v1/transactions/<str:transaction_id>", GET=producers.transaction),
    by_method("v1/transactions/<str:transaction_id>/check", POST=operators.check_now),
    by_method("v1/transactions/<str:transaction_id>/resolve", POST=operators.resolve),
    by_method("v1/discarded/<str:transaction_id>/resume", POST=operators.resume),
    by_method("v1/discarded/<str:transaction_id>/resolve", POST=operators.resolve_discarded),
    by_method("v1/producer-groups/<str:group>/checks/receive", POST=producers.receive_checks),
    by_method("v1/bulk", limits.bulk, POST=producers.bulk),
    by_method("v1/consumer-groups/<str:group>/receive", POST=consumers.receive),
    by_method("v1/consumer-groups/<str:group>/ack", POST=consumers.ack),
    by_method("v1/consumer-groups/<str:group>/offsets", GET=consumers.offsets, PUT=consumers.reset),
    by_method("v1/dead-letters/<str:group>", GET=consumers.dead_letters),
    by_method("v1/dead-letters/<str:group>/redrive", POST=consumers.redrive),
    by_method("v1/consumer-groups/<str:group>/nack", POST=consumers.nack),
    by_method("v1/consumer-groups/<str:group>/extend", POST=consumers.extend),
    by_method("v1/topics/<str:topic>/queues/<int:queue_id>/messages", GET=consumers.pull),
]
