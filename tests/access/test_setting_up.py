"""Who sets up what the broker sends by itself: outboxes and schedules."""

from tests.broker import characters
from tests.control.operators import Operator


def test_what_the_broker_sends_by_itself_is_ended_and_fired_by_whom_could_have_made_it(operator: Operator) -> None:
    ours, theirs = (characters.name(f"{team}%orders") for team in ("na", "nb"))
    scopes = ["manage", "produce:na%*"]
    made = operator.make("/v1/api-keys", name=characters.name("key"), scopes=scopes).document["key"]
    key = Operator(operator.url, made)
    url = "postgresql://shop:secret@127.0.0.1:9/shop"
    for topic, status in ((ours, 200), (theirs, 403)):
        name = characters.name("own")
        schedule, outbox = f"/v1/schedules/{name}", f"/v1/outboxes/{name}"
        message = {"topic": topic, "body": "x"}
        assert operator.put(schedule, cron="0 3 * * *", message=message, paused=True).status == 201
        assert operator.put(outbox, url=url, topics=[topic], paused=True).status == 201

        assert key.put(schedule, paused=True).status == status
        assert key.make(f"{schedule}/firings").status == {200: 201, 403: 403}[status]
        assert key.put(outbox, paused=True).status == status
        for path in (schedule, outbox):
            assert key.delete(path).status == {200: 204, 403: 403}[status]
            assert operator.delete(path).status == {200: 404, 403: 204}[status]
    for pattern, status in (("*", 403), ("nb%*", 403), ("n*", 403), ("na%x*", 201), ("na%*", 200)):
        assert key.put(outbox, url=url, topics=[pattern], paused=True).status == status, pattern
    operator.delete(outbox)
