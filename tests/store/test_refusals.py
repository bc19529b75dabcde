"""Which refusals are for now: what the broker sends by itself waits for these, and gives up at the others."""

from collections.abc import Iterator

from mqbroker.errors import STATUS_OF_CODE
from store.errors import Refusal, TopicClosed
from transactions import undecided_limits


def kinds(of: type[Refusal]) -> Iterator[type[Refusal]]:
    """Every class of refusals below one."""
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_a_refusal_is_for_now_where_its_status_says_so_and_while_a_topic_is_closed() -> None:
    assert undecided_limits  # it imports the rooms that refuse
    by_status = {kind for kind in kinds(Refusal) if STATUS_OF_CODE[kind.code] in (429, 503)}

    assert {kind for kind in kinds(Refusal) if kind.is_for_now} == {*by_status, TopicClosed}
    assert len(by_status) > 5
