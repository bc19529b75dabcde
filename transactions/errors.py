"""The refusals of transactions."""

from store.errors import Refusal


class TransactionNotFound(Refusal):
    """No transaction has this id, or its segment is gone."""

    code = "transaction_not_found"


class NotDiscarded(TransactionNotFound):
    """No discarded transaction has this id, whether or not another one has."""


class TransactionsRejected(Refusal):
    """Half messages are refused by setting or for the group (RocketMQ's rejectTransactionMessage)."""

    code = "transactions_rejected"


class ProducerGroupWrong(Refusal):
    """The transaction belongs to another producer group."""

    code = "producer_group_wrong"


class CommitLogOffsetWrong(Refusal):
    """The offset is not that of the transaction's message."""

    code = "commit_log_offset_wrong"


class TransactionEnded(Refusal):
    """The transaction was decided the other way before."""

    code = "transaction_ended"


class TransactionDiscarded(Refusal):
    """The transaction was given up after its last check; only an operator decides it now."""

    code = "transaction_discarded"


class EndpointNotExist(Refusal):
    """The producer group has no endpoint of this id."""

    code = "not_found"
