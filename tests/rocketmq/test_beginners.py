"""Which key began a half message: kept for a bounded number of them, of which no key takes the others' places."""

from uuid import UUID

from mqbroker.rocketmq.beginners import MAX_BEGUN, Beginners

OF_KEY = MAX_BEGUN * 5 // 8


def test_a_key_that_begins_very_many_leaves_room_to_others() -> None:
    beginners = Beginners()
    for number in range(MAX_BEGUN):
        beginners.keep(UUID(int=number), "greedy")
    beginners.keep(UUID(int=MAX_BEGUN), "other")

    assert (beginners.of(UUID(int=OF_KEY - 1)), beginners.of(UUID(int=OF_KEY))) == ("greedy", None)
    assert beginners.of(UUID(int=MAX_BEGUN)) == "other"


def test_the_oldest_go_where_all_places_are_taken() -> None:
    beginners = Beginners()
    for number in range(MAX_BEGUN + 1):
        beginners.keep(UUID(int=number), str(number % 2))

    assert (beginners.of(UUID(int=0)), beginners.of(UUID(int=1))) == (None, "1")
    assert beginners.of(UUID(int=MAX_BEGUN)) == "0"


def test_what_is_ended_makes_room() -> None:
    beginners = Beginners()
    for number in range(OF_KEY + 1):
        beginners.keep(UUID(int=number), "key")
        if number == 0:
            beginners.forget(UUID(int=0))

    assert (beginners.of(UUID(int=0)), beginners.of(UUID(int=OF_KEY))) == (None, "key")
