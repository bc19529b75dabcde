"""Stats: how many messages were stored, became visible and were decided: in total, in the last minute and hour."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.monitoring import stats
from mqbroker.api.control.fields import Number, Switch, Text, Time, Whole, Words
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Shape
from mqbroker.rights import MayMeasure


class Count(Shape):
    """A number within a period, and the number per second."""

    count = Whole()
    per_second = Number()


OF_ALL = "Counted for the whole broker alone: not there where the numbers are a namespace's."
COUNTED = "Of a namespace they are not there where the broker has more decisions of the time than can be counted."


class Totals(Shape):
    """Numbers of the messages and transactions in the kept segments; retention has dropped older segments."""

    messages = Whole(help_text=f"Stored messages, including half messages. {OF_ALL}", required=False)
    entries = Whole(
        help_text="Messages that became visible in a queue, not counting messages that wait at a delay level."
    )
    halves = Whole(help_text=f"Transactions begun. {COUNTED}", required=False)
    commits = Whole(required=False)
    rollbacks = Whole(required=False)
    discarded = Whole(
        help_text="Messages of transactions that were discarded after too many checks or because of their age.",
        required=False,
    )
    checks = Whole(help_text=f"Check attempts. {OF_ALL}", required=False)
    estimated = Switch(
        help_text="There were too many decisions to count: halves, commits and rollbacks are estimated from a sample."
    )


class Window(Shape):
    """The numbers of `Totals` for the last minute or hour."""

    seconds = Whole()
    messages = Count(required=False)
    entries = Count()
    halves = Count(required=False)
    commits = Count(required=False)
    rollbacks = Count(required=False)
    discarded = Count(required=False)
    checks = Count(required=False)
    estimated = Switch()


class Stats(Shape):
    """The activity of the broker. Numbers come from offsets and keys, not from counting rows: see the description."""

    at = Time()
    totals = Totals()
    last_minute = Window()
    last_hour = Window()
    missing = Words(child=Text(), help_text="The cells that did not answer: their messages are not counted.")


class StatsDetail(Resource):
    permission_classes = (MayMeasure,)
    in_namespaces = True

    @extend_schema(operation_id="get_stats", responses=Stats)
    def get(self, request: Request) -> Response:
        """Totals of kept messages, and rates of the last minute and hour, at most one second old.

        Messages, entries and discards are differences of offsets at both ends of the period; a write that failed leaves
        a gap that counts as a message. Decisions are counted up to 100,000 in a period; above, they are estimated from
        2,000 of them.

        A key that is bound to a namespace, or a request with X-Namespace, gets the numbers of the namespace's topics
        and producer groups. These are never estimated: a number that cannot be counted is left out.
        """
        if (namespace := self.narrowed_to) is None:
            return Response(Stats(stats.now()).data)
        return Response(Stats(stats.of_namespace(namespace)).data)
