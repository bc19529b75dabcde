"""The barrier: a row in the producer's own database, which decides both the local transaction and each check."""

from mqbroker_client.barrier.decisions import Barrier
from mqbroker_client.barrier.dialects import create_statements
from mqbroker_client.barrier.errors import AlreadyCommitted, BarrierError, TransactionAbandoned, TransactionDecided

__all__ = [
    "AlreadyCommitted",
    "Barrier",
    "BarrierError",
    "TransactionAbandoned",
    "TransactionDecided",
    "create_statements",
]
