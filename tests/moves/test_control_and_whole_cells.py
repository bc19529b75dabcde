"""The control is split as any cell is, and a whole cell goes to another server."""

from collections.abc import Mapping
from functools import partial

from mqbroker_client import Admin

from tests.broker import characters, metrics
from tests.broker.polling import eventually
from tests.broker.prepared_servers import url_in
from tests.broker.running import RunningBroker
from tests.moves.ground import Ground

# What is sent behind a split; and what the broker stores itself, or a failed write leaves out.
SENT, FEW = 4, 100


def _sends(broker: RunningBroker, topic: str) -> bool:
    return all(
        broker.wire(web).post("/v1/messages", {"topic": topic, "body": "x"}).status == 201
        for web in range(len(broker.webs))
    )


def _counted(broker: RunningBroker) -> Mapping[str, float]:
    """How many messages, and entries, all cells say that they have, had, or took within the last hour."""
    found, series = broker.wire().get("/v1/stats").document, metrics.read(broker.url)
    counted = {"kept": found["totals"]["messages"], "entries": found["totals"]["entries"]}
    counted |= {"of the hour": found["last_hour"]["messages"]["count"]}
    ever = ("mqbroker_messages_stored_total", "mqbroker_operations_total")
    return counted | {name: series[(name,)] for name in ever}


def _have_grown(broker: RunningBroker, before: Mapping[str, float]) -> bool:
    """Whether a few messages were stored since, and no more. An ended transaction is not among them."""
    grown = {name: number - before[name] for name, number in _counted(broker).items()}
    return 0 <= grown.pop("mqbroker_operations_total") < FEW and all(SENT <= more < FEW for more in grown.values())


def test_topics_of_the_control_move_to_a_cell_of_their_own(ground: Ground, broker: RunningBroker) -> None:
    ground.cells("open", "c0")
    moving, staying = characters.name("moving"), characters.name("staying")
    for topic in (moving, staying):
        Admin(broker.client()).create_topic(topic, queues=2)
        assert _sends(broker, topic)
    url = url_in(ground.standby(), "mqbroker")
    before = _counted(broker)

    ground.cells("split", "c0", "--into", "c5", "--standby", url, "--home", moving)

    for topic in (moving, staying):
        eventually(partial(_sends, broker, topic), within_seconds=10)
    stored = ground.stored(moving)
    assert (stored["c0"], stored["c5"]) == (2, stored["c5"])
    assert stored["c5"] >= 4
    assert ground.sql("c5", "SELECT count(*) FROM api_key") == [(0,)]
    eventually(partial(_have_grown, broker, before), within_seconds=10)


def test_a_whole_cell_goes_to_another_server(ground: Ground, broker: RunningBroker) -> None:
    ground.cells("open", "c1")
    topic = characters.name("moving")
    Admin(broker.client()).create_topic(topic, queues=2)
    assert _sends(broker, topic)
    url = url_in(ground.standby(), "mqbroker_c1")

    ground.cells("move", "c1", "--standby", url)

    eventually(partial(_sends, broker, topic), within_seconds=20)
    assert ground.url_of("c1") == url
    assert ground.stored(topic)["c1"] >= 4
