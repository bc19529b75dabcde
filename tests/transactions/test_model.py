"""Transactions against a model of a few lines: whatever is done in whatever order, the broker answers as the model."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer, Document

GROUPS = ("order-service", "mail-service")
MOST_REPEATS = 5
STATE_AFTER = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}


@dataclass
class Model:
    """What a transaction is: its messages by topic, its group, its state, and how much was said of it."""

    group: str
    messages: list[Document]
    offset: int = -1
    state: str = "PREPARED"
    said: int = 0

    def answer(self, group: str, offset: int | None, decision: str) -> tuple[int, str]:
        """The status and the state, or else the code, that an end is answered with. The rules in their order."""
        if group != self.group:
            return 409, "producer_group_wrong"
        if offset not in (None, self.offset):
            return 409, "commit_log_offset_wrong"
        if decision == "UNKNOWN":
            self.said += 1
            return 202, self.state
        if self.state == "PREPARED":
            self.state = STATE_AFTER[decision]
            self.said += 1
        return (200, self.state) if self.state == STATE_AFTER[decision] else (409, "transaction_ended")


class Transactions(RuleBasedStateMachine):
    """Begins, ends, repeats and receives at two web processes; the model says what must come of it."""

    known = Bundle("known")

    def __init__(self, broker: RunningBroker, model: type[Model] = Model) -> None:
        super().__init__()
        self.model = model
        self.webs = itertools.cycle([broker.wire(web) for web in range(len(broker.webs))])
        self.models: dict[str, Model] = {}
        self.visible: set[str] = set()
        self.received: list[str] = []
        # Requests that were sent again because their outcome was unknown.
        self.repeats = 0

    @initialize()
    def name_things(self) -> None:
        self.topics = [characters.name("orders"), characters.name("coupons")]
        self.groups = [characters.name(stem) for stem in GROUPS]
        self.consumer = characters.name("coupon-service")
        for topic in self.topics:
            self.send(topic)

    def post(self, path: str, document: Document) -> Answer:
        """Repeats what a machine that stalls for seconds left open; the ids make that safe."""
        for _ in range(MOST_REPEATS):
            answer = next(self.webs).post(path, document)
            if answer.status != 503:
                break
            self.repeats += 1
        return answer

    @property
    def stored(self) -> set[int]:
        """The statuses of what is stored: that of a repeat only where something was repeated."""
        return {201, 200} if self.repeats else {201}

    def send(self, topic: str) -> None:
        body = str(uuid4())
        asked = {"topic": topic, "body": body, "message_id": str(uuid4())}
        assert self.post("/v1/messages", asked).status in self.stored
        self.visible.add(body)

    def half(self, transaction_id: str) -> Document:
        model = self.models[transaction_id]
        return {
            "transaction_id": transaction_id,
            "producer_group": model.group,
            "messages": model.messages,
            "check_immunity_seconds": 3600,
        }

    @rule(target=known, group=st.integers(0, 1), topics=st.lists(st.integers(0, 1), min_size=1, max_size=3))
    def begin(self, group: int, topics: list[int]) -> str:
        transaction_id = str(uuid4())
        messages = [{"topic": self.topics[topic], "body": str(uuid4())} for topic in topics]
        self.models[transaction_id] = self.model(self.groups[group], messages)

        answer = self.post("/v1/transactions", self.half(transaction_id))

        assert answer.status in self.stored
        assert answer.document["state"] == "PREPARED"
        self.models[transaction_id].offset = answer.document["commit_log_offset"]
        return transaction_id

    @rule(transaction_id=known)
    def begin_again(self, transaction_id: str) -> None:
        answer = self.post("/v1/transactions", self.half(transaction_id))

        model = self.models[transaction_id]
        assert (answer.status, answer.document["state"], answer.document["duplicate"]) == (200, model.state, True)
        assert answer.document["commit_log_offset"] == model.offset

    @rule(transaction_id=known)
    def begin_with_another_body(self, transaction_id: str) -> None:
        half = self.half(transaction_id)
        changed = [{**half["messages"][0], "body": "another"}, *half["messages"][1:]]

        assert self.post("/v1/transactions", {**half, "messages": changed}).problem["code"] == "message_id_reused"

    @rule(
        transaction_id=known,
        decision=st.sampled_from(["COMMIT", "ROLLBACK", "UNKNOWN"]),
        by=st.sampled_from(["its group", "its group", "its group", "another group"]),
        at=st.sampled_from([None, "its offset", "another offset"]),
    )
    def end(self, transaction_id: str, decision: str, by: str, at: str | None) -> None:
        model = self.models[transaction_id]
        group = model.group if by == "its group" else next(name for name in self.groups if name != model.group)
        offset = {None: None, "its offset": model.offset, "another offset": model.offset + 1_000_000}[at]
        asked = {"producer_group": group, "state": decision}

        answer = self.post(
            f"/v1/transactions/{transaction_id}/end", asked | ({} if offset is None else {"commit_log_offset": offset})
        )

        status, word = model.answer(group, offset, decision)
        assert (answer.status, answer.document.get("state") or answer.document.get("code")) == (status, word)
        if model.state == "COMMITTED":
            self.visible |= {message["body"] for message in model.messages}

    @rule(transaction_ids=st.lists(known, min_size=2, max_size=5), decision=st.sampled_from(["COMMIT", "ROLLBACK"]))
    def end_several(self, transaction_ids: list[str], decision: str) -> None:
        models = [self.models[transaction_id] for transaction_id in transaction_ids]

        results = next(self.webs).bulk(
            *(
                {"op": "end", "transaction_id": transaction_id, "producer_group": model.group, "state": decision}
                for transaction_id, model in zip(transaction_ids, models, strict=True)
            )
        )

        expected = [model.answer(model.group, None, decision) for model in models]
        assert [(result["status"], result.get("state") or result.get("code")) for result in results] == expected
        for model in models:
            if model.state == "COMMITTED":
                self.visible |= {message["body"] for message in model.messages}

    @rule(topic=st.integers(0, 1), count=st.integers(1, 5))
    def receive(self, topic: int, count: int) -> None:
        asked = {"topic": self.topics[topic], "max_messages": count}
        answer = self.post(f"/v1/consumer-groups/{self.consumer}/receive", asked)

        assert answer.status == 200
        self.received += [entry["message"]["body"] for entry in answer.document["messages"]]

    @rule(transaction_id=known)
    def look(self, transaction_id: str) -> None:
        found = next(self.webs).get(f"/v1/transactions/{transaction_id}").document

        model = self.models[transaction_id]
        assert found["state"] == model.state
        assert 0 <= len(found["history"]) - (1 + model.said) <= self.repeats

    @invariant()
    def nothing_is_received_twice_or_unseen(self) -> None:
        assert len(self.received) == len(set(self.received))
        assert set(self.received) <= self.visible

    def teardown(self) -> None:
        """In the end the group gets exactly what is visible."""
        if not hasattr(self, "topics"):
            return
        for topic in range(2):
            before = -1
            while before < len(self.received):
                before = len(self.received)
                self.receive(topic, 32)
        # A receive whose outcome was unknown has hidden what it took.
        assert self.repeats or sorted(self.received) == sorted(self.visible)


@pytest.mark.one_cell(because="its transactions have messages of two topics")
def test_the_broker_answers_as_the_model_whatever_is_done_in_whatever_order(broker: RunningBroker) -> None:
    run(lambda: Transactions(broker))


class Forgetful(Model):
    """A model that lets a commit follow a rollback: RocketMQ's, before anybody asked for more."""

    def answer(self, group: str, offset: int | None, decision: str) -> tuple[int, str]:
        self.state = "PREPARED"
        return super().answer(group, offset, decision)


@pytest.mark.one_cell(because="its transactions have messages of two topics")
def test_a_model_that_promises_less_is_caught(broker: RunningBroker) -> None:
    with pytest.raises(AssertionError):
        run(lambda: Transactions(broker, Forgetful))


def run(machine: Callable[[], Transactions]) -> None:
    """Some hundreds of requests, in orders that hypothesis makes up."""
    bounds = settings(
        max_examples=30,
        stateful_step_count=25,
        deadline=None,
        # A shorter example of a failure would cost thousands of requests, and 25 steps can be read.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=bounds)  # type: ignore[arg-type]  # any factory will do, says its manual
