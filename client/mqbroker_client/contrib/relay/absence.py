"""Errors of kombu, amqp and redis that mean that the target is away. Other errors are not tried again."""

from amqp.exceptions import AMQPError, MessageNacked, NotFound
from kombu import Connection
from kombu.exceptions import LimitExceeded, OperationalError

#: RabbitMQ's reply codes for temporary problems or problems of the whole relay: the connection was closed by an
#: operator (320), a login, exchange or vhost is missing or not allowed (402, 403, 404, 530), a lock (405), a closed
#: channel (504), too few resources (506), a fault of the server (541). 0: the connection broke.
CODES = frozenset((0, 320, 402, 403, 404, 405, 504, 506, 530, 541))
#: Part of the text of a 403 that forbids the routing key, which a message may have chosen.
OF_A_KEY = "access to topic"
#: redis-py's error classes, and the first words of answers that have no class.
REDIS = frozenset(
    (
        *("OutOfMemoryError", "ReadOnlyError", "MasterDownError", "ClusterDownError", "TryAgainError"),
        *("OOM", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "LOADING", "MISCONF", "NOREPLICAS", "BUSY"),
        *("NOAUTH", "EXECABORT", "ExecAbortError"),
    )
)


def is_absence(problem: BaseException, connection: Connection, *, by_message: bool = False) -> bool:
    """Whether an error of a publish is not caused by the message, so that a later attempt may succeed.

    `by_message`: the message names its exchange, so that a missing exchange is the message's fault.
    """
    if isinstance(problem, NotFound) and by_message:
        return False
    if isinstance(problem, AMQPError):
        return (problem.reply_code or 0) in CODES and OF_A_KEY not in str(problem)
    if isinstance(problem, connection.channel_errors):
        return not REDIS.isdisjoint((type(problem).__name__, str(problem).partition(" ")[0]))
    # RabbitMQ nacks messages that a full queue refuses.
    return isinstance(problem, (OSError, OperationalError, LimitExceeded, MessageNacked, *connection.connection_errors))
