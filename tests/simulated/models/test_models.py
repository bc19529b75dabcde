"""Each model of a protocol holds, and each twin without one of the model's guards is refuted."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.simulated.models import (
    deliveries,
    draining,
    firing,
    forwarding,
    one_decision,
    segments,
    split,
    stalled_writer,
)
from tests.simulated.models.checker import Model, check

# The models, each with the number of its states, by what holds in all of them.
HOLDS: dict[str, tuple[Model[Any], int]] = {
    "a transaction has one decision, whatever its ends, checks, discards and operators do in between": (
        one_decision.MODEL,
        28_689,
    ),
    "a message is offered until it is acked or a dead letter": (deliveries.MODEL, 65_987),
    "a message of an ordered group is offered until it is acked or a dead letter": (deliveries.ORDERED, 15_609),
    "a message made of a delivery is stored once, and with the ack": (forwarding.MODEL, 28_127),
    "no segment is dropped that a row or an entry or a batch needs": (segments.MODEL, 10_908),
    "no segment is dropped with an entry of a delay level that waits": (segments.LEVELS, 1_886),
    "rows of an outbox are sent once in the order of their commits": (draining.MODEL, 11_956),
    "each time of a schedule is decided once, and its message stored once": (firing.MODEL, 19_785),
    "a split loses no acknowledged message, and its topics have one cell": (split.MODEL, 6_609),
    "a stalled writer holds up no other, and its caller is answered the truth": (stalled_writer.MODEL, 125),
}
TWINS: dict[str, Mapping[str, Model[Any]]] = {
    "one_decision": one_decision.TWINS,
    "deliveries": deliveries.TWINS,
    "forwarding": forwarding.TWINS,
    "segments": segments.TWINS,
    "draining": draining.TWINS,
    "firing": firing.TWINS,
    "split": split.TWINS,
    "stalled_writer": stalled_writer.TWINS,
}
# The length of the shortest counterexample to each twin, and what is wrong behind it.
REFUTED = {
    "one_decision": {
        "a stepwise end that waited does not look at the row again": (7, "two decisions: COMMIT and ROLLBACK"),
        "an end records its operation in a transaction of its own": (
            3,
            "the half message is gone without a decision, or decided and still there",
        ),
        "an end that found nothing believes it": (4, "the producer was refused, and the transaction could be decided"),
        "a pipelined end decides a discarded half message": (
            8,
            "a discarded half message was decided by another one than the operator",
        ),
        "a discard does not look again whether checks are used up": (7, "discarded, and its checks were not used up"),
    },
    "deliveries": {
        "an ack looks once": (5, "an ack is refused as expired, and the delivery has time left"),
        "a stepwise batch looks without locks": (8, "an ack is refused as expired, and the delivery has time left"),
        "a bundle is taken apart without its lock": (7, "acked, and offered again"),
        "an ack of an ordered group does not compare nonces": (
            11,
            "an old handle has acked the delivery of another consumer",
        ),
        "expiry does not look again at the time": (7, "a delivery was ended that had time left"),
        "a retry is published in a transaction of its own": (4, "the message is in no place, or in two"),
    },
    "forwarding": {
        "the message is stored, and then acked by a transaction of its own": (7, "two messages were made of one"),
        "the delivery is acked, and then sent by a transaction of its own": (
            5,
            "acked, and the message that was made of it is not stored",
        ),
        "a receipt is not locked before the message is stored": (8, "two messages were made of one"),
        "a repeat looks for its messages before its receipt": (7, "refused, and its message is stored"),
        "a batch acks before it knows that the message can be stored": (
            3,
            "acked, and the message that was made of it is not stored",
        ),
        "a batch sends for a receipt that has changed meanwhile": (7, "two messages were made of one"),
    },
    "segments": {
        "a roll does not wait for the batches under way": (13, "an entry has no message"),
        "a body that lies far back is not appended again": (
            6,
            "an entry points further back than into the segment before its own",
        ),
        "a log is dropped without a look for rows that need it": (9, "a row needs a body that is gone"),
        "a log is dropped beside a batch that was under way": (15, "a batch has read where a body is, and it is gone"),
        "a log is dropped before the queues of the segment behind it": (8, "an entry has no message"),
        "queues are dropped with entries of levels that wait": (
            3,
            "an entry of a delay level is dropped before its release",
        ),
        "queues are dropped with the newest moves": (4, "a group's newest move is lost"),
    },
    "draining": {
        "an insert takes its number without a lock of its key": (
            6,
            "rows of one key are not sent in the order of their commits",
        ),
        "the source commits before the messages are stored": (4, "a row is gone, and its message is not stored"),
        "each sending of a row has an id of its own": (7, "a row is sent twice"),
        "rows behind one that waits are sent": (7, "rows of one key are not sent in the order of their commits"),
    },
    "firing": {
        "a decision does not compare the next time": (4, "a time is decided twice"),
        "a decision does not compare versions": (6, "a time is decided that the schedule does not have any more"),
        "firings are inserted behind the move of the schedule": (
            2,
            "a time is over without its message, and without a firing",
        ),
        "each message has an id of its own": (8, "the message of a time is stored twice"),
        "a firing is deleted as it is taken": (3, "a time is over without its message, and without a firing"),
        "a change does not know the last time that was decided": (6, "a time is decided twice"),
    },
    "split": {
        "nothing refuses a writer with an old map": (
            17,
            "an acknowledged message is lost: the new cell does not have it",
        ),
        "a session that is about to begin is not waited for": (
            16,
            "an acknowledged message is lost: the new cell does not have it",
        ),
        "the position of the source is read before its sessions are ended": (
            16,
            "an acknowledged message is lost: the new cell does not have it",
        ),
        "a run does not look whether the fence is its own": (
            13,
            "both cells work on the half messages and deliveries of the moved topic",
        ),
        "a run notes a step that another run works at": (
            14,
            "the move is noted as undone, or as not divided, and the map names the new cell",
        ),
        "a second run reads the move before it takes the move over": (
            15,
            "the move is noted as undone, or as not divided, and the map names the new cell",
        ),
        "a run that reaches the source late does not look who holds the move": (
            17,
            "both cells work on the half messages and deliveries of the moved topic",
        ),
        "the source is not purged with the end of its fence": (
            13,
            "both cells work on the half messages and deliveries of the moved topic",
        ),
    },
    "stalled_writer": {
        "no process looks for stalled writers": (3, "no way leads from here to a settled state"),
        "a lock is taken from a session that lives": (7, "two messages have one offset, or an offset is left out"),
        "a commit leaves without a look at what the server has said": (
            6,
            "the outcome is called unknown, and the server had ended the session before the commit left",
        ),
        "each end of a session proves that nothing was stored": (10, "a message is stored twice"),
        "a commit without an answer counts as not stored": (
            6,
            "answered that nothing was stored, and the message is there",
        ),
    },
}


@pytest.mark.parametrize("promise", HOLDS)
def test_a_model_holds_in_all_of_its_states(promise: str) -> None:
    model, states = HOLDS[promise]

    checked = check(model)

    assert checked.counterexample is None, checked
    assert checked.states == states


@pytest.mark.parametrize(("name", "twin"), [(name, twin) for name, twins in TWINS.items() for twin in twins])
def test_a_model_is_refuted_without_one_of_its_guards(name: str, twin: str) -> None:
    counterexample = check(TWINS[name][twin]).counterexample

    assert counterexample is not None
    assert (len(counterexample.steps), counterexample.fault) == REFUTED[name][twin], counterexample
