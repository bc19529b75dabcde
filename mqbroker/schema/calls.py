"""The calls of the data plane with their summaries, requests and answers. Their paths are in the routes."""

from dataclasses import dataclass, field
from typing import Any

from console.monitoring import trace as monitoring_trace
from delivery.dead_letters.letters import DEFAULT_LISTED, MAX_LISTED, DeadLetters
from delivery.dead_letters.redrive import RedriveDeadLetters
from delivery.receive.offsets import OffsetsReset, ResetOffsets
from delivery.receive.positions import Offsets
from delivery.receive.pull import DEFAULT_MESSAGES, MAX_MESSAGES
from delivery.receive.receives import Receive
from mqbroker.api import bulks, consumers, lookup, operations, operators, producers, receipts
from mqbroker.api.router import View
from mqbroker.schema import results
from mqbroker.schema.rules import NAME
from scheduling.recalls import Recalled
from scheduling.sending.batches import SendBatch, SentBatch
from scheduling.sending.results import Sent
from store.messages import Message
from store.reading import cursors
from transactions.checks.polling import ReceiveChecks
from transactions.operations.end import EndTransaction
from transactions.operations.validation import BeginTransaction
from transactions.results import Awaited, Begun, Ended, TransactionHistory


@dataclass(frozen=True)
class Call:
    """A call of the data plane: its answers by status, and the refusals that only some calls have, by status."""

    summary: str
    answers: dict[int, Any]
    given: Any = None
    may_be_empty: bool = False
    problems: tuple[int, ...] = ()
    query: dict[str, dict[str, Any]] = field(default_factory=dict)
    required_query: tuple[str, ...] = ()
    description: str = ""


# Which callers see which fields in a look-up by id.
SIGHT = (
    "What consumers can see needs `read:` of its topic; what is undecided, rolled back, discarded, delayed or recalled "
    "`produce:` of its topic or `manage`. Else 404, as of an id that no message has."
)
# For topics that belong to the broker, of which each of several cells has its own queues.
CELL = {"type": "string", "description": "The cell whose queues of a topic of the broker's own are read."}
SETTLED = {200: receipts.ReceiptResults}


class Operations:
    """The body of a bulk in the schema. The real body is decoded one operation at a time."""


CALLS: dict[View, Call] = {
    operations.SEND: Call(
        "Send a message",
        given=Message,
        answers={201: Sent, 200: Sent},
        problems=(404, 409, 413, 429),
        description="201 when it was stored now; 200 and `duplicate` when the same `message_id` was stored before.",
    ),
    operations.SEND_BATCH: Call(
        "Send a batch",
        given=SendBatch,
        answers={201: SentBatch, 200: SentBatch},
        problems=(404, 409, 413, 429),
        description="One topic, one queue, consecutive offsets, all or nothing.",
    ),
    producers.recall: Call(
        "Recall a delayed message",
        given=producers.RecallMessage,
        answers={200: Recalled},
        problems=(404, 409),
        description="Exact: it is either recalled, or it was delivered and the answer is 409 `already_delivered`. Of a "
        "message of a topic that the key may not produce to, 404, as of none.",
    ),
    lookup.messages_of_topic: Call(
        "Look messages up by key, or by topic and time",
        answers={200: lookup.FoundMessages},
        problems=(404,),
        query={
            "topic": NAME,
            "key": {"type": "string", "pattern": r"^\S+$"},
            "from": {"type": "string", "format": "date-time"},
            "to": {"type": "string", "format": "date-time"},
            "limit": {"type": "integer", "minimum": 1, "maximum": cursors.MAX_LIMIT, "default": cursors.DEFAULT_LIMIT},
            "cursor": {"type": "string"},
            "cell": CELL,
        },
        required_query=("topic",),
        description="The newest first. With `key`: messages of the topic with this key that were stored from `from` on "
        "and before `to`; with `produce:` of the topic or `manage` also those that are not visible, else its entries. "
        "Without: entries of the topic that became visible within that time.",
    ),
    lookup.message: Call(
        "Look a message up by its id", answers={200: lookup.FoundMessage}, problems=(404,), description=SIGHT
    ),
    lookup.trace: Call(
        "Trace a message",
        answers={200: monitoring_trace.Trace},
        problems=(404,),
        description="From its store over its transaction, its delays and its entries to how each consumer group stands "
        f"with it. {SIGHT}",
    ),
    operations.BEGIN: Call(
        "Begin a transaction",
        given=BeginTransaction,
        answers={201: Begun, 200: Begun},
        problems=(404, 409, 413, 429),
        description="Stores half messages: durable, and invisible until the transaction is committed. One message "
        "at the top, or several in `messages` that are decided together.",
    ),
    operations.END: Call(
        "End a transaction",
        given=EndTransaction,
        answers={200: Ended, 202: Ended},
        problems=(404, 409),
        description="The first decision wins; the same again is answered the same, the opposite is 409. UNKNOWN: 202, "
        "it changes nothing but the history.",
    ),
    producers.transaction: Call(
        "Get a transaction with its history", answers={200: TransactionHistory}, problems=(404,)
    ),
    producers.receive_checks: Call(
        "Receive the checks that are due",
        given=ReceiveChecks,
        may_be_empty=True,
        answers={200: results.AskedTransactions},
        problems=(404,),
        description="For producers that cannot be called. Handing a transaction out is a check asked.",
    ),
    bulks.bulk: Call(
        "Make many calls at once",
        given=Operations,
        answers={200: results.BulkResults},
        problems=(413,),
        description="Each operation has the fields of its call. Each is validated by itself and answered in order.",
    ),
    operators.check_now: Call(
        "Ask about a transaction now",
        given=operators.CheckNow,
        may_be_empty=True,
        answers={202: Awaited},
        problems=(404, 409),
        description="It is due from now on: a worker asks within 2 s, its producer's own poll at once.",
    ),
    operators.resume: Call(
        "Resume a discarded transaction",
        given=operators.Resume,
        may_be_empty=True,
        answers={200: Awaited},
        problems=(404, 409),
        description="Its checks start again at 0. One that is older than the retention can only be resolved.",
    ),
    operators.resolve_discarded: Call(
        "Resolve a discarded transaction",
        given=operators.Resolve,
        answers={200: Ended},
        problems=(404, 409),
        description="404 for one that was never discarded, also when it has that decision.",
    ),
    operators.resolve: Call(
        "Decide a pending or discarded transaction as an operator",
        given=operators.Resolve,
        answers={200: Ended},
        problems=(404, 409),
        description="Answers and refusals are those of an end: the first decision stands.",
    ),
    consumers.receive: Call(
        "Receive messages",
        given=Receive,
        answers={200: results.Received},
        problems=(404,),
        description="What is handed out is hidden from the group for `invisible_seconds`, and comes again if it is not "
        "acked by then. Receipts of `ack` are acked before, whatever becomes of the receive; each has a result in "
        "`acked`. With AUTO_CREATE_TOPICS the first receive makes the topic and the group; a pull makes neither.",
    ),
    operations.ACK: Call(
        "Ack deliveries, and send what was made of them",
        given=receipts.AckDeliveries,
        answers=SETTLED,
        problems=(404, 409, 410, 413, 429),
        description="Without `messages` each receipt has a result of its own. With 1 to 128 `messages` the acks and "
        "the sends are committed together, or nothing of them: 410 `receipt_expired` where a receipt proves no "
        "delivery, and what POST /v1/messages refuses. Give each message its `message_id`: the call repeated under the "
        "same ids, also behind a lost answer, is answered as at first, and each message has `duplicate`.",
    ),
    consumers.nack: Call(
        "Give deliveries back",
        given=receipts.NackDeliveries,
        answers=SETTLED,
        problems=(404,),
        description="The next attempt comes after the group's retry delay, or after `delay_seconds`. The `reason` is "
        "kept with the message's trace and its dead letter.",
    ),
    consumers.give_back: Call(
        "Return deliveries that were not begun: no retry", given=receipts.Deliveries, answers=SETTLED, problems=(404,)
    ),
    consumers.extend: Call(
        "Extend the time of deliveries", given=receipts.ExtendDeliveries, answers=SETTLED, problems=(404,)
    ),
    consumers.offsets: Call(
        "Get a group's offsets",
        answers={200: Offsets},
        problems=(404,),
        query={"topic": {"type": "string"}, "cell": CELL},
        description="Without `topic`: in every topic that the group has begun to read and the key may read, and its "
        "retries of all.",
    ),
    consumers.reset: Call(
        "Reset a group's offsets",
        given=ResetOffsets,
        answers={200: OffsetsReset},
        problems=(404, 416),
        description="`to` is `earliest`, `latest`, a time or an offset. `dry_run: true` changes nothing.",
    ),
    consumers.dead_letters: Call(
        "List a group's dead letters",
        answers={200: DeadLetters},
        problems=(404,),
        query={
            "cursor": {"type": "integer", "minimum": 0, "default": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "default": DEFAULT_LISTED},
        },
    ),
    consumers.redrive: Call(
        "Redrive dead letters",
        given=RedriveDeadLetters,
        answers={200: results.Redriven},
        problems=(404,),
        description="`message_ids`, or `all: true`. One result per message; a redriven one has no retries behind it.",
    ),
    consumers.pull: Call(
        "Read a queue by offset",
        answers={200: results.Pulled},
        problems=(404, 416),
        query={
            "offset": {"type": "integer", "minimum": 0, "default": 0},
            "max": {"type": "integer", "minimum": 1, "maximum": MAX_MESSAGES, "default": DEFAULT_MESSAGES},
            "wait_seconds": {"type": "integer", "minimum": 0, "default": 0},
            "cell": CELL,
        },
        description="Keeps nothing about the reader: for replay, broadcast and streams. RocketMQ's topics "
        "`RMQ_SYS_TRANS_HALF_TOPIC` and `RMQ_SYS_TRANS_OP_HALF_TOPIC` are views, with `manage`: their offsets "
        "have holes, and `next_offset` goes on behind what was looked at.",
    ),
}
