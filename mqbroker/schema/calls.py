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


# For the description of look-ups by id: which callers see which fields.
SIGHT = (
    "A message that consumers can see needs `read:` of its topic; an undecided, rolled back, discarded, delayed or "
    "recalled message needs `produce:` of its topic or `manage`. Otherwise 404, as if no message had this id."
)
# The parameter `cell`: if there are several cells, each has its own queues of the topics that belong to the broker.
CELL = {"type": "string", "description": "For a topic such as %DLQ% of a group: the cell whose queues are read."}
SETTLED = {200: receipts.ReceiptResults}


class Operations:
    """The body of a bulk in the schema. The real body is decoded one operation at a time."""


CALLS: dict[View, Call] = {
    operations.SEND: Call(
        "Send a message",
        given=Message,
        answers={201: Sent, 200: Sent},
        problems=(404, 409, 413, 429),
        description="201 if the message is stored now; 200 and `duplicate` if the same `message_id` was stored before.",
    ),
    operations.SEND_BATCH: Call(
        "Send a batch",
        given=SendBatch,
        answers={201: SentBatch, 200: SentBatch},
        problems=(404, 409, 413, 429),
        description="All messages go to one topic and one queue, with consecutive offsets; all are stored, or none.",
    ),
    producers.recall: Call(
        "Recall a delayed message",
        given=producers.RecallMessage,
        answers={200: Recalled},
        problems=(404, 409),
        description="Exact: the message is either recalled, or it was delivered and the answer is 409 "
        "`already_delivered`. 404 also if the key may not produce to the message's topic.",
    ),
    lookup.messages_of_topic: Call(
        "Look up messages by key, or by topic and time",
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
        description="Newest first. With `key`: messages of the topic with this key, stored at or after `from` and "
        "before `to`; a key with `produce:` of the topic or `manage` also gets messages that are not visible, other "
        "keys get entries only. Without `key`: entries of the topic that became visible within that time.",
    ),
    lookup.message: Call(
        "Look up a message by its id", answers={200: lookup.FoundMessage}, problems=(404,), description=SIGHT
    ),
    lookup.trace: Call(
        "Trace a message",
        answers={200: monitoring_trace.Trace},
        problems=(404,),
        description="From the message's storing, through its transaction, its delays and its entries, to its state "
        "in each consumer group. The key needs the same scopes as for GET /v1/messages/{message_id}.",
    ),
    operations.BEGIN: Call(
        "Begin a transaction",
        given=BeginTransaction,
        answers={201: Begun, 200: Begun},
        problems=(404, 409, 413, 429),
        description="Stores half messages: durable, and invisible until the transaction is committed. The request "
        "has the fields of one message, or several `messages` that are decided together.",
    ),
    operations.END: Call(
        "End a transaction",
        given=EndTransaction,
        answers={200: Ended, 202: Ended},
        problems=(404, 409),
        description="The first decision counts; the same end again gets the same answer, the opposite decision gets "
        "409. UNKNOWN gets 202, and only adds to the history.",
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
        description="For producers that cannot be called. Each transaction in the answer counts as checked once.",
    ),
    bulks.bulk: Call(
        "Make many calls at once",
        given=Operations,
        answers={200: results.BulkResults},
        problems=(413,),
        description="Each operation has the fields of its single call, and is validated and answered separately.",
    ),
    operators.check_now: Call(
        "Check a transaction now",
        given=operators.CheckNow,
        may_be_empty=True,
        answers={202: Awaited},
        problems=(404, 409),
        description="The check is due at once: a worker sends it within 2 s, or the producer's own poll gets it.",
    ),
    operators.resume: Call(
        "Resume a discarded transaction",
        given=operators.Resume,
        may_be_empty=True,
        answers={200: Awaited},
        problems=(404, 409),
        description="Its checks are counted from 0 again. If it is older than the retention, it can only be resolved.",
    ),
    operators.resolve_discarded: Call(
        "Resolve a discarded transaction",
        given=operators.Resolve,
        answers={200: Ended},
        problems=(404, 409),
        description="404 if the transaction was never discarded, even if it already has this decision.",
    ),
    operators.resolve: Call(
        "Decide a pending or discarded transaction as an operator",
        given=operators.Resolve,
        answers={200: Ended},
        problems=(404, 409),
        description="Answers and refusals are the same as for an end: the first decision counts.",
    ),
    consumers.receive: Call(
        "Receive messages",
        given=Receive,
        answers={200: results.Received},
        problems=(404,),
        description="Messages in the answer are invisible to the group for `invisible_seconds`, then handed out again "
        "unless they were acked. Receipt handles in `ack` are acked first, even if the receive then fails; each has a "
        "result in `acked`. With AUTO_CREATE_TOPICS a receive creates the topic and the group; a pull does not.",
    ),
    operations.ACK: Call(
        "Ack deliveries, and send messages together with the acks",
        given=receipts.AckDeliveries,
        answers=SETTLED,
        problems=(404, 409, 410, 413, 429),
        description="Without `messages`, each receipt handle has a separate result. With 1 to 128 `messages`, the acks "
        "and the sends are committed together or not at all: refused with 410 `receipt_expired` if a receipt handle is "
        "no longer valid, and for the reasons of POST /v1/messages. Give each message a `message_id`: a repeat with "
        "the same ids, after a lost answer, gets the first answer, and each message has `duplicate`.",
    ),
    consumers.nack: Call(
        "Nack deliveries",
        given=receipts.NackDeliveries,
        answers=SETTLED,
        problems=(404,),
        description="The next attempt comes after the group's retry delay, or after `delay_seconds`. The `reason` is "
        "stored in the message's trace and its dead letter.",
    ),
    consumers.give_back: Call(
        "Return deliveries that were not begun: no retry", given=receipts.Deliveries, answers=SETTLED, problems=(404,)
    ),
    consumers.extend: Call(
        "Extend the invisible time of deliveries", given=receipts.ExtendDeliveries, answers=SETTLED, problems=(404,)
    ),
    consumers.offsets: Call(
        "Get a group's offsets",
        answers={200: Offsets},
        problems=(404,),
        query={"topic": {"type": "string"}, "cell": CELL},
        description="Without `topic`: the offsets in every topic that the group has begun to read and the key may "
        "read, and in the group's retries of these topics.",
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
        description="Takes `message_ids`, or `all: true`. One result per message; retries are counted from 0 again.",
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
        description="The broker remembers nothing about the reader: for replay, broadcast and streams. RocketMQ's "
        "topics `RMQ_SYS_TRANS_HALF_TOPIC` and `RMQ_SYS_TRANS_OP_HALF_TOPIC` are read-only topics for keys with "
        "`manage`: their offsets have gaps, and `next_offset` is the offset after the last row that was read.",
    ),
}
