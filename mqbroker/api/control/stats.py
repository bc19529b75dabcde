"""Stats: how much was stored, became visible and was decided, in all and within the last minute and hour."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.monitoring import stats
from mqbroker.api.control.fields import Number, Switch, Text, Time, Whole, Words
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Shape
from mqbroker.rights import MayMeasure


class Count(Shape):
    """A number within a stretch of time, and per second of it."""

    count = Whole()
    per_second = Number()


class Totals(Shape):
    """What the kept segments hold; older ones were dropped by retention."""

    messages = Whole(help_text="Stored, half messages among them.")
    entries = Whole(help_text="Messages that became visible in a queue; those that wait at a delay level are not yet.")
    halves = Whole(help_text="Transactions begun.")
    commits = Whole()
    rollbacks = Whole()
    discarded = Whole(help_text="Messages of transactions that were given up by their checks.")
    checks = Whole(help_text="Check attempts.")
    estimated = Switch(
        help_text="There were too many decisions to count: halves, commits and rollbacks are estimated from a sample."
    )


class Window(Shape):
    """The same of the last so many seconds."""

    seconds = Whole()
    messages = Count()
    entries = Count()
    halves = Count()
    commits = Count()
    rollbacks = Count()
    discarded = Count()
    checks = Count()
    estimated = Switch()


class Stats(Shape):
    """What the broker did. Numbers come from offsets and keys, not from counting rows: see the description."""

    at = Time()
    totals = Totals()
    last_minute = Window()
    last_hour = Window()
    missing = Words(child=Text(), help_text="The cells that did not answer: what they hold is not counted.")


class StatsDetail(Resource):
    permission_classes = (MayMeasure,)

    @extend_schema(operation_id="get_stats", responses=Stats)
    def get(self, request: Request) -> Response:
        """Totals of what is kept, and the rates of the last minute and hour, at most a second old.

        Messages, entries and discarded ones are differences of offsets at the edges of the time; a write that failed
        left a gap that counts as a message. Decisions are counted up to 100,000 in a stretch of time, and estimated
        from 2,000 of them beyond that.
        """
        return Response(Stats(stats.now()).data)
