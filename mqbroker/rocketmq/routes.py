"""Routes: the address for each of a client's topics, which is always the address that the client has used."""

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
# The queue id that stands for all queues: the broker chooses the queues of a receive.
EVERY_QUEUE = -1
# The maximum number of a client's addresses, and the maximum length of a host in characters.
MAX_ADDRESSES, MAX_HOST = 16, 255


async def route(call: Call, request: QueryRouteRequest) -> QueryRouteResponse:
    """QueryRoute: the queues of a topic.

    With AUTO_CREATE_TOPICS creates the topic, because clients ask before the first send.
    """
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
            # The topic accepts no messages, but may be read.
            pass
    call.caller.require("read", name)
    return await topics.for_consuming(name)


def _checked(given: Endpoints) -> Endpoints:
    """The addresses that a client has used, without other fields; the answer names them for each queue.

    Raises Refused without an address, and for more or longer addresses than clients have.
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
    """QueryAssignment: one assignment for all queues of a topic, the same for each consumer of a group."""
    endpoints = _checked(request.endpoints)
    name, group = call.whole(request.topic.name), call.whole(request.group.name)
    call.caller.require_receive(group, name)
    groups.validate_name(group)
    topic = await kept(topics.for_consuming(name))
    queue = _queue(call, topic.name, EVERY_QUEUE, Permission.READ, endpoints)
    return QueryAssignmentResponse(status=OK, assignments=[Assignment(message_queue=queue)])


async def heartbeat(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    """Heartbeat: after a failed call, a client sends to this broker again once a heartbeat is answered."""
    return HeartbeatResponse(status=OK)
