"""The client of mqbroker: transactional messages over HTTP."""

from mqbroker_client.administration import Admin, Endpoint
from mqbroker_client.batches import BatchesUnfinished, SentList
from mqbroker_client.checks import Check, CheckListener
from mqbroker_client.compression import Compression
from mqbroker_client.connection import Broker, Retry
from mqbroker_client.consumers import Consumer, Page, Redeliver, Settled
from mqbroker_client.errors import BrokerError
from mqbroker_client.executor import CheckExecutor
from mqbroker_client.halves import HalfMessage
from mqbroker_client.hooks import Hook, HookContext, LoggingHook
from mqbroker_client.messages import Delivery, Entry, Message, StoredMessage
from mqbroker_client.polling import CheckPoller
from mqbroker_client.producers import Ended, Placed, Producer, Sent, Transaction
from mqbroker_client.push import PushListener
from mqbroker_client.states import LocalTransactionState
from mqbroker_client.transactional import TransactionListener, TransactionProducer, TransactionSent

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
