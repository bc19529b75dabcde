"""Routes: where a client sends to and receives from, which is always the address that it came by."""

from delivery import groups
from mqbroker.rocketmq.call import Call, kept
from mqbroker.rocketmq.protocol.definition_pb2 import (
    Address,
    Assignment,
    Broker,
    Code,
    Endpoints,
    MessageQueue,
    MessageType,
    Permission,
    Resource,
)
from mqbroker.rocketmq.protocol.service_pb2 import (
    HeartbeatRequest,
    HeartbeatResponse,
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    QueryRouteRequest,
    QueryRouteResponse,
)
from mqbroker.rocketmq.statuses import OK, Refused
from store.errors import SendsForbidden, TopicForbidden
from store.naming import topics
from store.naming.topics import TopicFacts

PERMISSIONS = {
    "rw": Permission.READ_WRITE,
    "r": Permission.READ,
    "w": Permission.WRITE,
}
TYPES = (MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION)
NAME = "mqbroker"
# The broker chooses the queues of a consumer's receive.
EVERY_QUEUE = -1
# Of the endpoints of one client, and of the host in one of them.
MAX_ADDRESSES, MAX_HOST = 16, 255


async def route(call: Call, request: QueryRouteRequest) -> QueryRouteResponse:
    """QueryRoute: the queues of a topic. Clients ask before the first send: AUTO_CREATE_TOPICS acts here."""
    endpoints = _checked(request.endpoints)
    topic = await kept(_topic(call, call.whole(request.topic.name)))
    permission = PERMISSIONS.get(topic.permission, Permission.NONE)
    queues = [_queue(call, topic.name, number, permission, endpoints) for number in range(topic.queues)]
    return QueryRouteResponse(status=OK, message_queues=queues)


async def _topic(call: Call, name: str) -> TopicFacts:
    if call.caller.may("produce", name) and not topics.is_system(name):
        try:
            return await topics.for_sending(name)
        except (TopicForbidden, SendsForbidden):
            # It takes no messages: it may be read all the same.
            pass
    call.caller.require("read", name)
    return await topics.for_consuming(name)


def _checked(given: Endpoints) -> Endpoints:
    """The addresses by which a client says that it came, without anything else: each queue is answered with them.

    Raises Refused without an address, and for more or longer ones than clients have.
    """
    if not given.addresses:
        raise Refused(Code.ILLEGAL_ACCESS_POINT, "The request has no endpoints: a client names the address it came by.")
    if len(given.addresses) > MAX_ADDRESSES or any(len(one.host) > MAX_HOST for one in given.addresses):
        detail = (
            f"The endpoints are too many or too long: give {MAX_ADDRESSES} addresses of {MAX_HOST} characters at most."
        )
        raise Refused(Code.ILLEGAL_ACCESS_POINT, detail)
    addresses = [Address(host=one.host, port=one.port) for one in given.addresses]
    return Endpoints(scheme=given.scheme, addresses=addresses)


def _queue(call: Call, topic: str, number: int, permission: Permission, endpoints: Endpoints) -> MessageQueue:
    broker = Broker(name=NAME, id=0, endpoints=endpoints)
    resource = Resource(name=call.shown(topic))
    return MessageQueue(topic=resource, id=number, permission=permission, broker=broker, accept_message_types=TYPES)


async def assignment(call: Call, request: QueryAssignmentRequest) -> QueryAssignmentResponse:
    """QueryAssignment: one for all queues of a topic, which each consumer of a group has."""
    endpoints = _checked(request.endpoints)
    name, group = call.whole(request.topic.name), call.whole(request.group.name)
    call.caller.require_receive(group, name)
    groups.validate_name(group)
    topic = await kept(topics.for_consuming(name))
    queue = _queue(call, topic.name, EVERY_QUEUE, Permission.READ, endpoints)
    return QueryAssignmentResponse(status=OK, assignments=[Assignment(message_queue=queue)])


async def heartbeat(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    """Heartbeat: a client that is answered goes on sending here after a call that failed."""
    return HeartbeatResponse(status=OK)
