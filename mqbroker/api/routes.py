"""The paths of the data plane, with the view of each method; other methods of these paths belong to
the control plane.
"""

from mqbroker.api import bulks, consumers, lookup, operations, operators, producers, request_bytes
from mqbroker.api.router import Limit, Route, View


def route(
    pattern: str,
    *verbs: str,
    limit: Limit = request_bytes.short_call,
    begins: bool = False,
    **views: View,
) -> Route:
    """A path with the views of its methods. `limit` returns the maximum bytes of a request.

    A body is only read if the key has a scope with one of the verbs.
    """
    return Route(pattern, views, limit, begins, verbs)


routes = [
    route(
        "v1/messages",
        "produce",
        limit=request_bytes.message,
        begins=True,
        POST=operations.SEND,
        GET=lookup.messages_of_topic,
    ),
    route(
        "v1/messages/batch",
        "produce",
        limit=request_bytes.batch,
        begins=True,
        POST=operations.SEND_BATCH,
    ),
    route("v1/messages/recall", "produce", POST=producers.recall),
    route("v1/messages/<str:message_id>", GET=lookup.message),
    route("v1/messages/<str:message_id>/trace", GET=lookup.trace),
    route(
        "v1/transactions",
        "produce",
        limit=request_bytes.transaction,
        begins=True,
        POST=operations.BEGIN,
    ),
    route("v1/transactions/<str:transaction_id>/end", "produce", POST=operations.END),
    route("v1/transactions/<str:transaction_id>", GET=producers.transaction),
    route("v1/transactions/<str:transaction_id>/check", "manage", POST=operators.check_now),
    route("v1/transactions/<str:transaction_id>/resolve", "manage", POST=operators.resolve),
    route("v1/discarded/<str:transaction_id>/resume", "manage", POST=operators.resume),
    route("v1/discarded/<str:transaction_id>/resolve", "manage", POST=operators.resolve_discarded),
    route("v1/producer-groups/<str:group>/checks/receive", "produce", POST=producers.receive_checks),
    route("v1/bulk", *bulks.VERBS, limit=request_bytes.bulk, POST=bulks.bulk),
    route("v1/consumer-groups/<str:group>/receive", "consume", limit=request_bytes.call, POST=consumers.receive),
    route("v1/consumer-groups/<str:group>/ack", "consume", limit=request_bytes.ack, POST=operations.ACK),
    route("v1/consumer-groups/<str:group>/nack", "consume", limit=request_bytes.call, POST=consumers.nack),
    route("v1/consumer-groups/<str:group>/return", "consume", limit=request_bytes.call, POST=consumers.give_back),
    route("v1/consumer-groups/<str:group>/extend", "consume", limit=request_bytes.call, POST=consumers.extend),
    route("v1/consumer-groups/<str:group>/offsets", "consume", "manage", GET=consumers.offsets, PUT=consumers.reset),
    route("v1/dead-letters/<str:group>", GET=consumers.dead_letters),
    route("v1/dead-letters/<str:group>/redrive", "manage", limit=request_bytes.call, POST=consumers.redrive),
    route("v1/topics/<str:topic>/queues/<int:queue_id>/messages", GET=consumers.pull),
]
