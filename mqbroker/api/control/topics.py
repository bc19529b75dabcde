"""Topics: create, grow, change, list and delete."""

from collections.abc import Sequence
from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqbroker.api.control import lists
from mqbroker.api.control.fields import Time, Whole
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Given, Registered, Shape
from store import models as store
from store import registry
from store.naming import names, topics
from transactions import registry as transaction_registry
from transactions.reads import internal_topics


class TopicSettings(Given):
    """The settings of a topic. A field that is left out keeps its value; a new topic gets the default."""

    settings = Registered(registry.FIELDS)


class QueueBounds(Shape):
    """The lowest and the next offset of a queue."""

    queue_id = Whole()
    min_offset = Whole(help_text="The lowest offset that is still stored.")
    max_offset = Whole(help_text="The next offset to be written.")
    last_stored_at = Time(allow_null=True)


class TopicSummary(Shape):
    """The settings of a topic. `system`: the topic belongs to the broker, and can be read but not changed."""

    name = serializers.CharField()
    settings = Registered(registry.FIELDS, answers=True)
    system = serializers.SerializerMethodField()
    created_at = Time()

    def get_system(self, topic: store.Topic) -> bool:
        return topics.is_system(topic.name)


class Topic(TopicSummary):
    """A topic with the bounds of its queues, sorted by queue id."""

    offsets = QueueBounds(many=True)


def document(topic: store.Topic) -> dict[str, object]:
    """The document of a topic: the values of the fields of `Topic`."""
    return {**TopicSummary(topic).data, "offsets": QueueBounds(registry.bounds(topic), many=True).data}


def view(name: str) -> store.Topic:
    """RocketMQ's topic of half messages or of ends, for the list.

    The topic has no row, because it is a view of other tables.
    """
    made_at = registry.find(names.SCHEDULE).created_at
    return store.Topic(name=name, queues=1, permission="r", created_at=made_at)


def rows_behind(after: str, count: int, namespace: str | None = None) -> Sequence[store.Topic]:
    """Topics by name, including the views: the first `count` after `after`."""
    found = [*registry.page(after, count, namespace=namespace)]
    if namespace is None:
        found += [view(name) for name in internal_topics.NAMES if name > after]
    return sorted(found, key=lambda topic: topic.name)[:count]


class TopicList(Resource):
    in_namespaces = True

    @extend_schema(operation_id="list_topics", parameters=[PageQuery], responses=lists.page_of(TopicSummary))
    def get(self, request: Request) -> Response:
        """Lists topics by name, including the broker's own."""
        return lists.by_name(TopicSummary, self.query(PageQuery), rows_behind, self.narrowed_to)


class TopicDetail(Resource):
    in_namespaces = True
    actions: ClassVar = {"PUT": "topic.put", "DELETE": "topic.delete"}

    @extend_schema(operation_id="get_topic", responses=Topic)
    def get(self, request: Request, topic: str) -> Response:
        """Shows a topic with the bounds of its queues."""
        return Response(document(registry.find(topic)))

    @extend_schema(operation_id="put_topic", request=TopicSettings, responses={200: Topic, 201: Topic})
    def put(self, request: Request, topic: str) -> Response:
        """Creates a topic, or changes the given fields. The change applies to every request after the answer."""
        given = self.body(TopicSettings)
        return self.kept(topic, registry.named, lambda: registry.put(topic, given), document)

    @extend_schema(operation_id="delete_topic", responses={204: None})
    def delete(self, request: Request, topic: str) -> Response:
        """Deletes a topic with all its messages; refused while undecided transactions have messages of the topic.

        A topic that is created later with the same name begins at offset 0. Messages that are sent before the answer
        may be deleted with the topic.
        """
        return self.removed(topic, lambda: registry.find(topic), transaction_registry.remove_topic)
