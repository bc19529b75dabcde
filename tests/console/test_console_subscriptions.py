"""Promises of the pages of subscriptions: where messages are pushed to, how the servers answer, and no secret."""

from datetime import timedelta

from tests.console import given_up
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_agreement import document


def test_subscriptions_are_listed_with_their_health(broker: Broker, ada: Operator) -> None:
    given_up.subscription(broker, "mail", "mail", "orders", "https://mail.example/in")
    given_up.subscription(broker, "sms", "sms", "orders", "https://sms.example/in", paused=True)
    given_up.subscription(
        *(broker, "push", "push", "orders", "https://push.example/in"),
        state="open",
        failures=1,
        last_failure="The endpoint answered 503.",
        last_failure_at=broker.now - timedelta(minutes=3),
    )

    rows = {row[0]: row[1:] for row in ada.sees("subscriptions/").table("subscriptions")}

    assert {name: row[0] for name, row in rows.items()} == {
        "mail": "healthy",
        "push": "paused after failures",
        "sms": "paused",
    }
    assert rows["mail"][3:] == ["https://mail.example/in", "never", "none"]
    assert rows["push"][5].startswith("The endpoint answered 503. 3 min")
    assert "Calls paused after 1 failure, next try with the next call" in ada.sees("subscriptions/push/").text
    assert [row[0] for row in ada.sees("subscriptions/?q=US").table("subscriptions")] == ["push"]


def test_a_subscription_shows_its_lag_as_the_api_does_and_no_secret(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders", queues=1)
    broker.consumer_group("mail")
    for _ in range(3):
        broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=1)))
    given_up.subscription(
        broker, "mail", "mail", "orders", "https://mail.example/in", failures=4, last_failure="No connection."
    )

    page = ada.sees("subscriptions/mail/")

    assert document(ada, "/v1/subscriptions/mail")["lag"] == 3
    assert "Lag 3" in page.text
    assert "Failures in a row 4" in page.text
    assert "No connection." in page.text
    assert "whsec_" not in page.html
    assert ada.sees("subscriptions/nothing/").status == 404
