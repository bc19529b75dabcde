"""Notices to other processes: sent while one may listen, and not for a process that is alone."""

from collections import Counter

import psycopg

from store.notices import notifier
from store.notices.notifier import CHANNEL
from store.notices.peers import ALONE_SECONDS, NOT_LISTENING, PRESENCE_SECONDS, Peers
from tests.store.keeper import Keeper


def test_a_process_that_does_not_listen_takes_it_that_others_do() -> None:
    assert Peers().may_listen(now=1e9)


def test_a_process_that_hears_of_no_other_sends_nothing_after_a_while() -> None:
    peers = Peers()

    peers.listen(now=100)

    assert peers.may_listen(now=100 + ALONE_SECONDS - 1)
    assert not peers.may_listen(now=100 + ALONE_SECONDS)


def test_a_process_that_says_that_it_listens_is_sent_notices() -> None:
    peers = Peers()
    peers.listen(now=100)

    peers.hear("another", now=200)

    assert peers.may_listen(now=201)
    # Two of its words may be lost.
    assert peers.may_listen(now=200 + 3 * PRESENCE_SECONDS)
    assert not peers.may_listen(now=200 + ALONE_SECONDS)


def test_a_process_whose_connection_broke_takes_it_that_others_listen() -> None:
    peers = Peers()
    peers.listen(now=100)

    peers.end()

    assert peers.may_listen(now=1e9)


def test_a_process_that_does_not_listen_is_no_peer_and_makes_none_less_alone() -> None:
    peers = Peers()
    peers.begin()
    peers.listen(now=100)

    assert not peers.hear(NOT_LISTENING, now=200)

    assert peers.others(now=200) == set()
    assert not peers.may_listen(now=200)


def test_a_process_knows_the_others_when_it_has_listened_without_a_break() -> None:
    peers = Peers()
    assert not peers.may_be_unknown(now=100), "it does not listen at all"

    peers.begin()
    assert peers.may_be_unknown(now=100)

    now = listening_since(100, peers)
    assert peers.may_be_unknown(now)
    peers.hear_itself(now=100 + ALONE_SECONDS)
    assert not peers.may_be_unknown(now=100 + ALONE_SECONDS)

    peers.end()
    assert peers.may_be_unknown(now=100 + ALONE_SECONDS)


def test_a_process_that_hears_nothing_for_a_while_knows_that_another_may_be_there() -> None:
    """The server was frozen, say. Each process hears its own notices, too."""
    peers = Peers()
    peers.begin()
    now = listening_since(100, peers) + PRESENCE_SECONDS
    peers.hear_itself(now)
    peers.hear("another", now)
    assert not peers.may_be_unknown(now)

    now += ALONE_SECONDS - 0.01
    assert peers.others(now) == {"another"}
    assert peers.may_be_unknown(now)

    peers.hear_itself(now + 10)
    assert peers.others(now + 10) == set()
    assert peers.may_be_unknown(now + 10), "the others have had no time yet to be heard"


def listening_since(began: float, peers: Peers) -> float:
    """Until when the process has listened, almost long enough, with its own notices in between."""
    peers.listen(began)
    for now in (began + PRESENCE_SECONDS, began + 2 * PRESENCE_SECONDS, began + 3 * PRESENCE_SECONDS):
        peers.hear_itself(now)
    return began + 3 * PRESENCE_SECONDS


def test_a_notice_names_the_topics_and_how_many_messages_became_visible(keeper: Keeper, database_url: str) -> None:
    async def notify() -> None:
        notifier.notify(Counter({7: 3}))

    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"LISTEN {CHANNEL}".encode())

        keeper.do(notify())

        [notice] = connection.notifies(timeout=120, stop_after=1)
    assert notice.payload == f"{NOT_LISTENING};7:3"
