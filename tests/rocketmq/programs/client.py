"""RocketMQ's Python client, commanded by lines of JSON; it runs where that client alone is installed.

Its protocol classes and the broker's cannot be loaded into one process.
"""

import base64
import json
import sys
import threading
import time

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)
from rocketmq.grpc_protocol import FilterType

RESOLUTIONS = {
    "COMMIT": TransactionResolution.COMMIT,
    "ROLLBACK": TransactionResolution.ROLLBACK,
    "UNKNOWN": TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED,
}
CONSUMERS = {"simple": SimpleConsumer, "push": PushConsumer}
address, key, secret, tls = sys.argv[1:]
configuration = ClientConfiguration(address, Credentials(key, secret), request_timeout=10)
options = {"tls_enable": tls == "tls"}
clients = {}
transactions = {}
printing = threading.Lock()


def say(**line):
    with printing:
        print(json.dumps(line), flush=True)


def shown(message):
    return {
        "topic": message.topic,
        "message_id": message.message_id,
        "body": base64.b64encode(message.body).decode(),
        "tag": message.tag,
        "keys": sorted(message.keys or ()),
        "properties": message.properties,
        "group": message.message_group,
        "attempt": message.delivery_attempt,
    }


class Checker(TransactionChecker):
    def __init__(self, answer):
        self.answer = answer

    def check(self, message):
        say(event="checked", **shown(message))
        return RESOLUTIONS[self.answer]


class Listener(MessageListener):
    def __init__(self, seconds, fails):
        self.seconds, self.fails = seconds, fails

    def consume(self, message):
        say(event="consumed", **shown(message))
        time.sleep(self.seconds)
        fails = base64.b64encode(message.body).decode() in self.fails
        return ConsumeResult.FAILURE if fails else ConsumeResult.SUCCESS


def message_of(command):
    message = Message()
    message.topic, message.body = command["topic"], base64.b64decode(command["body"])
    for field, name in (("tag", "tag"), ("group", "message_group"), ("deliver_at", "delivery_timestamp")):
        if command.get(field) is not None:
            setattr(message, name, command[field])
    if command.get("keys"):
        # The client's own setter takes one key alone.
        [message.keys] = command["keys"]
    for name, value in command.get("properties", {}).items():
        message.add_property(name, value)
    return message


def expression_of(command):
    if "sql" in command:
        return FilterExpression(command["sql"], FilterType.SQL)
    return FilterExpression(command.get("filter", "*"))


def produce(command):
    clients["producer"] = Producer(configuration, command["topics"], Checker(command["answer"]), **options)
    clients["producer"].startup()


def send(command):
    receipt = clients["producer"].send(message_of(command))
    return {"message_id": receipt.message_id, "recall_handle": receipt.recall_handle}


def begin(command):
    transaction = clients["producer"].begin_transaction()
    receipt = clients["producer"].send(message_of(command), transaction)
    transactions[receipt.transaction_id] = transaction
    return {"message_id": receipt.message_id, "transaction_id": receipt.transaction_id}


def end(command):
    transaction = transactions[command["transaction_id"]]
    (transaction.commit if command["state"] == "COMMIT" else transaction.rollback)()


def recall(command):
    return {"message_id": clients["producer"].recall_message(command["topic"], command["recall_handle"])}


def subscribe(command):
    subscription = {command["topic"]: expression_of(command)}
    clients["simple"] = SimpleConsumer(configuration, command["group"], subscription, command["wait"], **options)
    clients["simple"].startup()


def receive(command):
    found = clients["simple"].receive(32, command["invisible"]) or []
    if command.get("ack", True):
        for message in found:
            clients["simple"].ack(message)
    held[:] = found
    return {"messages": [shown(message) for message in found]}


held = []


def extend(command):
    for message in held:
        clients["simple"].change_invisible_duration(message, command["invisible"])


def push(command):
    listener = Listener(command.get("seconds", 0), command.get("fails", ()))
    subscription = {command["topic"]: expression_of(command)}
    clients["push"] = PushConsumer(configuration, command["group"], listener, subscription, **options)
    clients["push"].startup()


def stop(command):
    clients.pop(command["client"]).shutdown()


DO = {one.__name__: one for one in (produce, send, begin, end, recall, subscribe, receive, extend, push, stop)}

for line in sys.stdin:
    given = json.loads(line)
    try:
        say(answer=DO[given["do"]](given) or {})
    except Exception as problem:  # noqa: BLE001  # whatever the client throws is the answer
        say(failed=f"{type(problem).__name__}: {problem} {getattr(problem, 'code', '')}")
