"""Producer groups as an operator administers them."""

from tests.broker.wire import problem
from tests.control.operators import Operator, illegal


def test_put_makes_a_group_and_changes_what_is_given(operator: Operator, shop: str) -> None:
    made = operator.put(f"/v1/producer-groups/{shop}", max_undecided=10)
    changed = operator.put(f"/v1/producer-groups/{shop}", checks_paused=True)

    assert (made.status, changed.status) == (201, 200)
    assert {**operator.reads(f"/v1/producer-groups/{shop}"), "created_at": ...} == {
        "name": shop,
        "reject_transaction_message": False,
        "max_undecided": 10,
        "checks_paused": True,
        "api_keys": None,
        "created_at": ...,
        "pending": 0,
        "oldest_pending_at": None,
        "missing": [],
    }


def test_a_bad_field_is_named_with_what_is_wrong(operator: Operator, shop: str) -> None:
    path = f"/v1/producer-groups/{shop}"

    assert illegal(operator.put(path, checks_paused="true")) == "checks_paused: it is neither true nor false."
    assert illegal(operator.put(path, max_undecided=0)) == "max_undecided: it is below 1."
    assert illegal(operator.put(path, checks_pausd=True)) == (
        "There is no field checks_pausd here: the fields are reject_transaction_message, max_undecided, "
        "checks_paused, api_keys."
    )
    assert illegal(operator.put("/v1/producer-groups/my%20shop")) == (
        "producer_group 'my shop' is not a valid group name: 1 to 127 letters, digits and % | _ -."
    )
    assert operator.get(path).status == 404


def test_an_unknown_group_is_not_found(operator: Operator, shop: str) -> None:
    sentence = f"There is no producer group {shop}: PUT /v1/producer-groups/{shop} makes it."
    for answer in (
        operator.get(f"/v1/producer-groups/{shop}"),
        operator.delete(f"/v1/producer-groups/{shop}"),
        operator.get(f"/v1/producer-groups/{shop}/endpoints"),
    ):
        assert answer.problem == problem(404, "group_not_exist", sentence)


def test_what_waits_for_its_decision_is_told(operator: Operator, shop: str, orders: str) -> None:
    first, _ = (
        operator.make("/v1/transactions", producer_group=shop, topic=orders, body="order").document for _ in range(2)
    )
    history = operator.reads(f"/v1/transactions/{first['transaction_id']}")["history"]

    group = operator.reads(f"/v1/producer-groups/{shop}")

    assert group["pending"] == 2
    assert group["oldest_pending_at"] == history[0]["at"]


def test_groups_are_listed_by_name_page_by_page(operator: Operator, shop: str) -> None:
    for number in (2, 1):
        operator.put(f"/v1/producer-groups/{shop}-{number}")

    names = [group["name"] for group in operator.walks("/v1/producer-groups")]

    assert names == sorted(names)
    assert [name for name in names if name.startswith(shop)] == [f"{shop}-1", f"{shop}-2"]


def test_a_group_that_rejects_transactions_begins_none(operator: Operator, shop: str, orders: str) -> None:
    operator.put(f"/v1/producer-groups/{shop}", reject_transaction_message=True)

    refused = operator.make("/v1/transactions", producer_group=shop, topic=orders, body="order")

    assert refused.problem["code"] == "transactions_rejected"


def test_a_group_is_deleted_only_when_nothing_is_undecided(operator: Operator, shop: str, orders: str) -> None:
    begun = operator.make("/v1/transactions", producer_group=shop, topic=orders, body="order").document

    refused = operator.delete(f"/v1/producer-groups/{shop}")

    assert illegal(refused) == (
        f"The producer group {shop} has 1 undecided transactions: "
        "end them before you delete the group, the discarded ones with `mqb resolve`."
    )
    operator.make(f"/v1/transactions/{begun['transaction_id']}/end", producer_group=shop, state="COMMIT")
    assert operator.delete(f"/v1/producer-groups/{shop}").status == 204
    assert operator.get(f"/v1/producer-groups/{shop}").status == 404
