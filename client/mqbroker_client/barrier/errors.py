"""Errors after which a local transaction must not commit."""

from uuid import UUID


class BarrierError(Exception):
    """The local transaction must be rolled back."""


class OutsideTransaction(BarrierError):
    """A message should belong to a database transaction, but none is open."""


class TransactionDecided(BarrierError):
    """The transaction has a row in the barrier already: roll back."""

    def __init__(self, transaction_id: UUID, detail: str) -> None:
        super().__init__(f"transaction {transaction_id} {detail}")
        self.transaction_id = transaction_id


class TransactionAbandoned(TransactionDecided):
    """A check before the local transaction was answered ROLLBACK, so its messages are never delivered."""

    def __init__(self, transaction_id: UUID) -> None:
        super().__init__(
            transaction_id,
            "was answered ROLLBACK to a check before it committed: roll back, and try again as a new transaction",
        )


class AlreadyCommitted(TransactionDecided):
    """A local transaction with this id has committed before, so its work must not be done again."""

    def __init__(self, transaction_id: UUID) -> None:
        super().__init__(transaction_id, "has committed before: roll back; its work is done")
