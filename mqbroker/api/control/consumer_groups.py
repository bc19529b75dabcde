"""Consumer groups: create, change, list and delete, and the lag of each group."""

from collections.abc import Sequence
from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access.audit import picture
from delivery import models as delivery
from delivery import registry, stats
from delivery.retries import retrying
from mqbroker.api.control import lists
from mqbroker.api.control.fields import Time, Whole
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Given, Registered, Shape


class ConsumerGroupSettings(Given):
    """The settings of a consumer group. A field that is left out keeps its value; a new group gets the default."""

    settings = Registered(registry.FIELDS)


class QueueLag(Shape):
    """The lag of a group in a queue: the entries that were not handed to it yet."""

    topic = serializers.CharField()
    queue_id = Whole()
    next_offset = Whole(help_text="The next offset that the group will be handed.")
    max_offset = Whole(help_text="The next offset to be written.")
    lag = Whole()
    moved_at = Time(allow_null=True, help_text="When the group last moved on; null: it has not read the queue yet.")
    oldest_unacked_at = Time(
        allow_null=True,
        help_text="When the oldest entry that the group has not acked became visible; null: there is none.",
    )


class Waits(Shape):
    """Retrying messages, which wait for their next attempt: they are not in the lag and not in flight."""

    messages = Whole()
    oldest_at = Time(allow_null=True, help_text="Since when the oldest retry waits; null: there is none.")
    next_at = Time(allow_null=True, help_text="When the next retry is handed out; null: there is none.")


class WaitsOfTopic(Waits):
    """The retrying messages of one topic."""

    topic = serializers.CharField()


class Retrying(Waits):
    """The retrying messages of all topics, and of each topic that has some."""

    topics = WaitsOfTopic(many=True)


class ConsumerGroupSummary(Shape):
    """The settings of a consumer group."""

    name = serializers.CharField()
    settings = Registered(registry.FIELDS, answers=True)
    created_at = Time()


class ConsumerGroup(ConsumerGroupSummary):
    """A consumer group with its lag in each queue of the topics that it reads. Its retries have their own topic."""

    lag = QueueLag(many=True)
    retrying = Retrying()


def document(
    group: delivery.ConsumerGroup, lag: Sequence[stats.QueueLag], waits: retrying.ByTopic
) -> dict[str, object]:
    """The document of a group: the values of the fields of `ConsumerGroup`."""
    topics = [{"topic": topic, **Waits(found).data} for topic, found in waits.items()]
    of_all = {**Waits(retrying.in_all(waits)).data, "topics": topics}
    return {**ConsumerGroupSummary(group).data, "lag": QueueLag(lag, many=True).data, "retrying": of_all}


class ConsumerGroupList(Resource):
    in_namespaces = True

    @extend_schema(
        operation_id="list_consumer_groups", parameters=[PageQuery], responses=lists.page_of(ConsumerGroupSummary)
    )
    def get(self, request: Request) -> Response:
        """Lists consumer groups by name."""
        return lists.by_name(ConsumerGroupSummary, self.query(PageQuery), registry.page, self.narrowed_to)


class ConsumerGroupDetail(Resource):
    in_namespaces = True
    actions: ClassVar = {"PUT": "consumer_group.put", "DELETE": "consumer_group.delete"}

    @extend_schema(operation_id="get_consumer_group", responses=ConsumerGroup)
    def get(self, request: Request, group: str) -> Response:
        """Shows a consumer group with its lag."""
        row = registry.find(group)
        return Response(document(row, stats.queues_of(row), retrying.of_groups([row])[row.id]))

    @extend_schema(
        operation_id="put_consumer_group",
        request=ConsumerGroupSettings,
        responses={200: ConsumerGroup, 201: ConsumerGroup},
    )
    def put(self, request: Request, group: str) -> Response:
        """Creates a consumer group, or changes the given fields.

        The change applies to every request after the answer.
        """
        given = self.body(ConsumerGroupSettings)
        with self.recorded(group) as change:
            before = self.standing(registry.named, group)
            # The lag is counted outside of the change, which locks the group's row: receives would wait for the
            # counting.
            change.before, lag = picture(before), [] if before is None else stats.queues_of(before)
            waits: retrying.ByTopic = {} if before is None else retrying.of_groups([before])[before.id]
            row, made = registry.put(group, given)
            change.after = picture(row)
        return Response(document(row, lag, waits), status=201 if made else 200)

    @extend_schema(operation_id="delete_consumer_group", responses={204: None})
    def delete(self, request: Request, group: str) -> Response:
        """Deletes a consumer group with its progress, its deliveries in flight and its retries.

        Its dead letters stay readable in their topic. A group that is created later with the same name starts without
        progress; until then, subscriptions that name the group push nothing.
        """
        return self.removed(group, lambda: registry.find(group), lambda row: registry.remove(row.name))
