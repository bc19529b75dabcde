"""Schedules: messages that the broker sends by itself at the times of a cron expression."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqbroker.api.control import lists
from mqbroker.api.control.fields import Time, Whole
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource, require_produce
from mqbroker.api.control.shapes import Given, Registered, Shape
from scheduling.cron import models, registry

SHOWN_TIMES = 5


class ScheduleSettings(Given):
    """The settings of a schedule.

    A field that is left out keeps its value; a new schedule needs `message` and `cron`.
    """

    settings = Registered(registry.FIELDS)


class ScheduleSummary(Shape):
    """A schedule, with the results of its recent firings."""

    name = serializers.CharField()
    settings = Registered(registry.FIELDS, answers=True)
    next_at = Time(
        allow_null=True,
        help_text="The next time whose firing is not decided yet, which is done 4.5 s ahead; null: none is left.",
    )
    last_at = Time(allow_null=True, help_text="The latest time whose firing was decided.")
    fired = Whole(help_text="Firings that were decided, in total, including firings by hand, without refused ones.")
    failure = serializers.CharField(
        allow_null=True,
        help_text="Why the latest message was refused or waits; null as soon as a message is stored again.",
    )
    failed_at = Time(allow_null=True, help_text="The first failure since the last success or change.")
    created_at = Time()


class Schedule(ScheduleSummary):
    """A schedule with its next times."""

    next_times = serializers.ListField(child=Time(), help_text="The next five times; none while it is paused.")


class Fired(Shape):
    """A firing that was decided: its message is sent within seconds, with this message_id."""

    message_id = serializers.UUIDField(source="id")
    fire_at = Time()


def document(row: models.Schedule) -> dict[str, Any]:
    """The document of a schedule in answers."""
    at = Time()
    times = [at.to_representation(time) for time in registry.next_times(row, SHOWN_TIMES)]
    return {**ScheduleSummary(row).data, "next_times": times}


class ScheduleList(Resource):
    @extend_schema(operation_id="list_schedules", parameters=[PageQuery], responses=lists.page_of(ScheduleSummary))
    def get(self, request: Request) -> Response:
        """Schedules by name."""
        return lists.by_name(ScheduleSummary, self.query(PageQuery), registry.page)


def topics_of(*messages: object) -> Iterator[str]:
    """The topics of these messages; values that are not messages with a topic are skipped."""
    for message in messages:
        if isinstance(message, Mapping) and isinstance(message.get("topic"), str):
            yield message["topic"]


def found(request: Request, name: str) -> models.Schedule:
    """The schedule with this name, if the caller may send its message. Raises NoPermission otherwise."""
    row = registry.find(name)
    require_produce(request, topics_of(row.message))
    return row


class ScheduleDetail(Resource):
    actions: ClassVar = {"PUT": "schedule.put", "DELETE": "schedule.delete"}

    @extend_schema(operation_id="get_schedule", responses=Schedule)
    def get(self, request: Request, name: str) -> Response:
        """Shows a schedule with its next times."""
        return Response(document(registry.find(name)))

    @extend_schema(operation_id="put_schedule", request=ScheduleSettings, responses={200: Schedule, 201: Schedule})
    def put(self, request: Request, name: str) -> Response:
        """Creates a schedule, or changes the given fields.

        At each of its times the broker sends its message, once, with the properties `schedule` and `scheduled_at`. A
        change applies to times at least 4.5 s in the future; nearer firings are already decided.
        """
        given = self.body(ScheduleSettings)
        row = self.standing(registry.named, name)
        require_produce(request, topics_of(row and row.message, given.get(registry.MESSAGE)))
        return self.kept(name, registry.named, lambda: registry.put(name, given), document)

    @extend_schema(operation_id="delete_schedule", responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Deletes a schedule. Firings of the next 4.5 s are already decided and are still sent."""
        return self.removed(name, lambda: found(request, name), registry.remove)


class FiringList(Resource):
    actions: ClassVar = {"POST": "schedule.fire"}

    @extend_schema(operation_id="fire_schedule", request=None, responses={201: Fired})
    def post(self, request: Request, name: str) -> Response:
        """Fires a schedule now, in addition to its times; also works for a paused one.

        Each call sends another message.
        """
        self.body(Given)
        with self.recorded(name) as change:
            firing = registry.fire(found(request, name))
            change.after = {"message_id": str(firing.id)}
        return Response(Fired(firing).data, status=201)


PATHS = (
    ("v1/schedules", ScheduleList),
    ("v1/schedules/<str:name>", ScheduleDetail),
    ("v1/schedules/<str:name>/firings", FiringList),
)
