"""The client of mqbroker: transactional messages over HTTP."""

from mqbroker_client.barrier.transactional import TransactionListener, TransactionProducer, TransactionSent
from mqbroker_client.core.administration import Admin, Endpoint
from mqbroker_client.core.batches import BatchesUnfinished, SentList
from mqbroker_client.core.checks import Check, CheckListener
from mqbroker_client.core.compression import Compression
from mqbroker_client.core.connection import Broker, Retry
from mqbroker_client.core.consumers import Consumer, Page, Redeliver, Settled
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.executor import CheckExecutor
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.hooks import Hook, HookContext, LoggingHook
from mqbroker_client.core.messages import Delivery, Entry, Message, StoredMessage
from mqbroker_client.core.polling import CheckPoller
from mqbroker_client.core.producers import Ended, Placed, Producer, Sent, Transaction
from mqbroker_client.core.push import PushListener
from mqbroker_client.core.states import LocalTransactionState

__all__ = [
    "Admin",
    "BatchesUnfinished",
    "Broker",
    "BrokerError",
    "Check",
    "CheckExecutor",
    "CheckListener",
    "CheckPoller",
    "Compression",
    "Consumer",
    "Delivery",
    "Ended",
    "Endpoint",
    "Entry",
    "HalfMessage",
    "Hook",
    "HookContext",
    "LocalTransactionState",
    "LoggingHook",
    "Message",
    "Page",
    "Placed",
    "Producer",
    "PushListener",
    "Redeliver",
    "Retry",
    "Sent",
    "SentList",
    "Settled",
    "StoredMessage",
    "Transaction",
    "TransactionListener",
    "TransactionProducer",
    "TransactionSent",
]
