"""The refusals of transactions."""

from store.errors import Refusal


class TransactionNotFound(Refusal):
    """There is no transaction with this id, or its segment was dropped."""

    code = "transaction_not_found"


class NotDiscarded(TransactionNotFound):
    """There is no discarded transaction with this id; there may be a transaction in another state."""


class TransactionsRejected(Refusal):
    """A setting or the group refuses half messages (RocketMQ's rejectTransactionMessage)."""

    code = "transactions_rejected"


class ProducerGroupWrong(Refusal):
    """The transaction belongs to another producer group."""

    code = "producer_group_wrong"


class CommitLogOffsetWrong(Refusal):
    """The log offset in the request differs from the log offset of the transaction's message."""

    code = "commit_log_offset_wrong"


class TransactionEnded(Refusal):
    """The transaction is decided already, with the opposite decision."""

    code = "transaction_ended"


class TransactionDiscarded(Refusal):
    """The transaction was discarded after its last check. Only an operator can decide it now."""

    code = "transaction_discarded"


class EndpointNotExist(Refusal):
    """The producer group has no endpoint with this id."""

    code = "not_found"
