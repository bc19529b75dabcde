"""Each code of the broker's error list is a class of its own that carries what the answer said."""

import traceback

import pytest
from mqbroker_client import Broker, Producer
from mqbroker_client.core import errors

from tests.client.answers import problem
from tests.client.servers import Answer, scripted

CODES = [
    (401, "unauthenticated", errors.Unauthenticated),
    (403, "no_permission", errors.NoPermission),
    (404, "topic_not_exist", errors.TopicNotExist),
    (404, "transaction_not_found", errors.TransactionNotFound),
    (404, "message_not_found", errors.MessageNotFound),
    (404, "group_not_exist", errors.GroupNotExist),
    (422, "message_illegal", errors.MessageIllegal),
    (413, "message_too_large", errors.MessageTooLarge),
    (422, "properties_too_large", errors.PropertiesTooLarge),
    (422, "topic_illegal", errors.TopicIllegal),
    (403, "topic_forbidden", errors.TopicForbidden),
    (422, "batch_illegal", errors.BatchIllegal),
    (422, "delay_illegal", errors.DelayIllegal),
    (422, "filter_illegal", errors.FilterIllegal),
    (422, "queue_illegal", errors.QueueIllegal),
    (403, "transactions_rejected", errors.TransactionsRejected),
    (409, "producer_group_wrong", errors.ProducerGroupWrong),
    (409, "commit_log_offset_wrong", errors.CommitLogOffsetWrong),
    (409, "transaction_ended", errors.TransactionEnded),
    (409, "transaction_discarded", errors.TransactionDiscarded),
    (409, "already_delivered", errors.AlreadyDelivered),
    (409, "message_id_reused", errors.MessageIdReused),
    (410, "receipt_expired", errors.ReceiptExpired),
    (416, "offset_out_of_range", errors.OffsetOutOfRange),
    (429, "rate_limited", errors.RateLimited),
    (503, "system_busy", errors.SystemBusy),
    (503, "cell_away", errors.CellAway),
    (503, "topic_moved", errors.TopicMoved),
    (503, "outcome_unknown", errors.OutcomeUnknown),
    (400, "bad_request", errors.BadRequest),
    (400, "transaction_spans_cells", errors.TransactionSpansCells),
    (500, "internal_error", errors.InternalError),
    (403, "a_code_of_tomorrow", errors.Forbidden),
    (422, "a_code_of_tomorrow", errors.Refused),
    (405, "a_code_of_tomorrow", errors.BrokerError),
]


@pytest.mark.parametrize(("status", "code", "kind"), CODES)
def test_a_problem_becomes_its_class(status: int, code: str, kind: type[errors.BrokerError]) -> None:
    error = errors.from_problem(status, {"code": code, "detail": "Why."}, "request-1", None)

    assert type(error) is kind
    assert (error.status, error.code, error.detail, error.request_id) == (status, code, "Why.", "request-1")
    assert str(error) == f"{code} ({status}): Why."


def test_an_error_carries_the_whole_problem() -> None:
    answer = problem(416, "offset_out_of_range", "Offset 9 is past the end.", min_offset=2, max_offset=5)
    with scripted(answer) as server, pytest.raises(errors.OffsetOutOfRange) as refused:
        Broker(server.url, "mq_key").call("GET", "/v1/anything")

    assert (refused.value.problem["min_offset"], refused.value.problem["max_offset"]) == (2, 5)
    assert refused.value.request_id == server.asked[0].headers["x-request-id"]


@pytest.mark.parametrize("answer", [b"<html>hello</html>", {}, {"message_id": "x"}])
def test_an_answer_of_another_service_is_named(answer: object) -> None:
    with scripted(Answer(200, answer)) as server, pytest.raises(errors.AnswerNotUnderstood):
        Producer(Broker(server.url, "mq_key"), "shop").send("orders", b"order 1")


def test_a_redirect_is_not_followed() -> None:
    with (
        scripted(Answer(302, headers={"Location": "/elsewhere"})) as server,
        pytest.raises(errors.BrokerError) as error,
    ):
        Broker(server.url, "mq_key").call("GET", "/v1/anything")

    assert error.value.status == 302
    assert len(server.asked) == 1


def test_the_key_goes_with_every_request_and_into_no_error() -> None:
    with (
        scripted(problem(401, "unauthenticated", "Unknown key.")) as server,
        pytest.raises(errors.Unauthenticated) as e,
    ):
        Broker(server.url, "mq_secret_key").call("GET", "/v1/anything")

    assert server.asked[0].headers["authorization"] == "Bearer mq_secret_key"
    assert "mq_secret_key" not in repr(e.value)


@pytest.mark.parametrize("key", ["mq_secret\n", "  mq_secret\r\n"])
def test_a_key_may_come_with_the_newline_of_its_file(key: str) -> None:
    with scripted(Answer(200)) as server:
        Broker(server.url, key).call("GET", "/v1/anything")

    assert server.asked[0].headers["authorization"] == "Bearer mq_secret"


@pytest.mark.parametrize("key", ["", "\n", "mq_secret\nmq_other", "mq_sécret", "mq_secret\x00"])
def test_a_key_that_is_none_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ValueError, match="the API key is empty, or has a character that no key has") as refused:
        Broker("http://127.0.0.1:8000", key)

    assert "cret" not in "".join(traceback.format_exception(refused.value))


def test_an_address_without_a_scheme_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="http://"):
        Broker("localhost:8000", "mq_key")
