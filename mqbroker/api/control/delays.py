"""Delays: waiting messages per level and in timers, the lateness of releases, and the next releases."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqbroker.api.control.fields import Number, Switch, Text, Time, Whole, Words
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Shape
from scheduling import lateness, stats
from store.cells import cells

NO_RELEASES = lateness.Summary()


class Lateness(Shape):
    """How late releases were in the last hour: milliseconds from the due time until the message was visible."""

    released = Whole()
    p50_ms = Number(allow_null=True)
    p99_ms = Number(allow_null=True)


class DelayLevel(Shape):
    """A delay level.

    `delay_seconds` is null if the level is no longer in the settings but messages still wait in the level.
    """

    level = Whole()
    delay_seconds = Whole(allow_null=True)
    backlog = Whole(help_text="Waiting messages; a recalled message counts until its time.")
    oldest_at = Time(allow_null=True, help_text="Since when the oldest message waits.")
    next_due_at = Time(allow_null=True)
    lateness = Lateness()
    forecast = serializers.ListField(child=Whole(), help_text="Deliveries in each of the next 60 minutes.")


class DelayLevels(Shape):
    """Every delay level."""

    results = DelayLevel(many=True)
    next = serializers.CharField(allow_null=True, help_text="Always null: there is one page.")
    missing = Words(child=Text(), help_text="The cells that did not answer: their messages are not counted.")


class Timers(Shape):
    """The messages that wait in timers, each for its own due time."""

    backlog = Whole(help_text="Counted to a million.")
    oldest_at = Time(allow_null=True, help_text="Since when the oldest message waits.")
    next_due_at = Time(allow_null=True)
    lateness = Lateness()
    forecast = serializers.ListField(child=Whole(), help_text="Deliveries in each of the next 60 minutes.")
    estimated = Switch(help_text="The later minutes are estimates: more than 10,000 timers are due in the hour.")
    missing = Words(child=Text(), help_text="The cells that did not answer: their messages are not counted.")


class DelayLevelList(Resource):
    @extend_schema(operation_id="list_delay_levels", responses=DelayLevels)
    def get(self, request: Request) -> Response:
        """Lists the delay levels with the messages that wait in each."""
        with cells.leaving_out() as missing:
            results = self._levels()
        return Response(DelayLevels({"results": results, "next": None, "missing": missing}).data)

    def _levels(self) -> list[dict[str, object]]:
        late, coming = lateness.of_last_hour(), stats.level_forecast()
        return [
            {
                "level": level.level,
                "delay_seconds": level.delay_seconds,
                "backlog": level.backlog,
                "oldest_at": level.oldest_at,
                "next_due_at": level.next_due_at,
                "lateness": late.get(level.level, NO_RELEASES),
                "forecast": coming.get(level.level, [0] * stats.MINUTES),
            }
            for level in stats.levels()
        ]


class TimersDetail(Resource):
    @extend_schema(operation_id="get_timers", responses=Timers)
    def get(self, request: Request) -> Response:
        """Shows how many messages wait in timers, each for its own due time."""
        with cells.leaving_out() as missing:
            coming, estimated = stats.timer_forecast()
            ends = stats.timer_ends()
            fields = {
                "backlog": stats.timers(),
                "oldest_at": ends.oldest_at,
                "next_due_at": ends.next_due_at,
                "lateness": lateness.of_last_hour().get(None, NO_RELEASES),
                "forecast": coming,
                "estimated": estimated,
            }
        return Response(Timers({**fields, "missing": missing}).data)
