"""The race: a web process is stopped with requests routed by the old map, the cell is split, and it goes on."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from mqbroker_client import Admin

from tests.broker import characters
from tests.broker.prepared_servers import url_in
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer
from tests.moves.ground import Ground

# MQ_ROUNDS=50 in the environment has so many.
ROUNDS = int(os.environ.get("MQ_ROUNDS", "2"))
CALLERS = 24


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_what_a_stopped_process_had_by_the_old_map_is_stored_once_or_refused(
    ground: Ground, broker: RunningBroker, turn: int
) -> None:
    topic, target = characters.name("moving"), characters.name("c")
    Admin(broker.client()).create_topic(topic, queues=2)
    for web in range(2):
        assert broker.wire(web).post("/v1/messages", {"topic": topic, "body": f"known {web}"}).status == 201
    standby = ground.standby()
    stopped = broker.webs[0].pid

    def send(number: int) -> Answer:
        return broker.wire(0).post("/v1/messages", {"topic": topic, "body": str(number)})

    with ThreadPoolExecutor(CALLERS) as threads:
        os.kill(stopped, signal.SIGSTOP)
        try:
            sent = [threads.submit(send, number) for number in range(CALLERS)]
            ground.cells("split", "c1", "--into", target, "--standby", url_in(standby, "mqbroker_c1"), "--home", topic)
        finally:
            os.kill(stopped, signal.SIGCONT)
        answers = [one.result() for one in sent]

    acknowledged = {str(number) for number, answer in enumerate(answers) if answer.status == 201}
    pages = [broker.wire(1).get(f"/v1/topics/{topic}/queues/{queue}/messages?offset=0&max=100") for queue in range(2)]
    entries = [page.document["messages"] for page in pages]
    bodies = [entry["message"]["body"] for queue in entries for entry in queue]
    assert sorted(bodies) == sorted({*acknowledged, "known 0", "known 1"})
    assert [[entry["queue_offset"] for entry in queue] for queue in entries] == [list(range(len(q))) for q in entries]
    assert {answer.status for answer in answers} <= {201, 503}
    assert ground.stored(topic)["c1"] == 2
