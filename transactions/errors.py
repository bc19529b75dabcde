"""The refusals of transactions."""

from store.errors import Refusal


class TransactionNotFound(Refusal):
    """No transaction has this id, or its segment was dropped."""

    code = "transaction_not_found"


class NotDiscarded(TransactionNotFound):
    """No discarded transaction has this id; a transaction in another state may have it."""


class TransactionsRejected(Refusal):
    """A setting or the group refuses half messages (RocketMQ's rejectTransactionMessage)."""

    code = "transactions_rejected"


class ProducerGroupWrong(Refusal):
    """The transaction belongs to another producer group."""

    code = "producer_group_wrong"


class CommitLogOffsetWrong(Refusal):
    """The log offset in the request is not the one of the transaction's message."""

    code = "commit_log_offset_wrong"


class TransactionEnded(Refusal):
    """The transaction is decided already, the other way."""

    code = "transaction_ended"


class TransactionDiscarded(Refusal):
    """The transaction was discarded after its last check. Only an operator can decide it now."""

    code = "transaction_discarded"


class EndpointNotExist(Refusal):
    """The producer group has no endpoint of this id."""

    code = "not_found"
