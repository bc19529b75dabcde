"""Promises of an endpoint's health: a failing endpoint is left alone, and noticed when it is back."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks.endpoint_answers import Answer
from webhooks.endpoint_health import Circuit, open_seconds

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
GOOD = Answer("answered", True, "The endpoint answered 200.", 1.0, 200)
TIMEOUT = Answer("timeout", True, "", 5_000.0)
REFUSED = Answer("refused", False, "", 1.0)
GONE = Answer("answered", True, "", 1.0, 410)
ERROR = Answer("answered", True, "", 1.0, 500)


def busy(seconds: float) -> Answer:
    return Answer("answered", True, "", 1.0, 503, retry_after_seconds=seconds)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def failed(times: int, answer: Answer = TIMEOUT) -> Circuit:
    circuit = Circuit()
    for _ in range(times):
        circuit = circuit.after(NOON, answer)
    return circuit


@pytest.mark.parametrize("answer", [TIMEOUT, REFUSED, ERROR], ids=["timeout", "refused", "500"])
def test_it_opens_for_five_seconds_at_the_fifth_failure_in_a_row(answer: Answer) -> None:
    assert failed(4, answer) == Circuit("healthy", 4)
    assert failed(5, answer) == Circuit("open", 5, after(5))
    assert failed(4, answer).may_call(NOON)
    assert not failed(5, answer).may_call(after(4.999))
    assert failed(5, answer).may_call(after(5))


def test_a_success_in_between_starts_the_count_again() -> None:
    assert failed(4).after(NOON, GOOD) == Circuit()


def test_one_probe_decides_and_no_other_call_is_made_meanwhile() -> None:
    probing = failed(5).probing(after(5), claim_seconds=15)

    assert probing == Circuit("half_open", 5, after(20))
    assert not probing.may_call(after(19))
    assert probing.after(after(6), GOOD) == Circuit()


def test_a_probe_that_fails_opens_it_for_twice_as_long_up_to_five_minutes() -> None:
    circuit, now, waits = failed(5), NOON, []
    for _ in range(9):
        assert circuit.open_until is not None
        waits.append((circuit.open_until - now).total_seconds())
        now = circuit.open_until
        circuit = circuit.probing(now, claim_seconds=15).after(now, TIMEOUT)

    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_a_probe_whose_worker_died_is_followed_by_another_one_after_its_claim() -> None:
    probing = failed(5).probing(after(5), claim_seconds=15)

    assert probing.may_call(after(20))
    assert probing.probing(after(20), claim_seconds=15) == Circuit("half_open", 5, after(35))


def test_failures_of_calls_that_were_under_way_when_it_opened_do_not_count() -> None:
    assert failed(20) == failed(5)


def test_a_success_of_a_call_that_was_under_way_when_it_opened_closes_it() -> None:
    assert failed(5).after(after(1), GOOD) == Circuit()


def test_410_disables_it_until_an_operator_says_otherwise() -> None:
    gone = Circuit().after(NOON, GONE)

    assert gone == Circuit("disabled", 1)
    assert not gone.may_call(after(10**9))
    assert gone.after(NOON, GOOD) == gone
    assert gone.after(NOON, busy(1)) == gone
    assert gone.probing(NOON, 15) == gone


def test_410_with_a_body_above_the_cap_disables_it_too() -> None:
    assert Circuit().after(NOON, Answer("too_large", True, "", 1.0, 410)).state == "disabled"


def test_retry_after_opens_it_at_once_until_then() -> None:
    circuit = Circuit().after(NOON, busy(30))

    assert circuit == Circuit("open", 1, after(30))
    assert not circuit.may_call(after(29))
    assert circuit.may_call(after(30))


def test_retry_after_of_a_late_answer_can_only_ask_for_more_time() -> None:
    assert failed(5).after(after(1), busy(60)) == Circuit("open", 5, after(61))
    assert failed(5).after(after(1), busy(2)) == failed(5)


def test_a_short_retry_after_does_not_shorten_the_backoff() -> None:
    probing = failed(5).probing(after(5), claim_seconds=15)

    assert probing.after(after(5), busy(1)) == Circuit("open", 6, after(15))


def test_healthy_calls_store_nothing_new() -> None:
    circuit = Circuit()

    assert circuit.probing(NOON, 15) is circuit


answers = st.one_of(
    st.sampled_from([GOOD, TIMEOUT, REFUSED, ERROR, GONE]), st.integers(0, 10_000).map(lambda seconds: busy(seconds))
)


class Model:
    """The law in its plainest form: when the next call may be made, for calls that are answered at once."""

    def __init__(self) -> None:
        self.in_a_row, self.tripped, self.gone, self.ready_at = 0, False, False, NOON

    def call(self, now: datetime, answer: Answer) -> None:
        if answer is GOOD:
            self.in_a_row, self.tripped, self.ready_at = 0, False, now
            return
        self.gone = answer is GONE
        self.in_a_row += 1
        self.tripped = self.tripped or self.in_a_row >= 5
        backoff = min(5 * 2 ** max(self.in_a_row - 5, 0), 300) if self.tripped else 0
        wait = max(backoff, answer.retry_after_seconds or 0)
        self.tripped, self.ready_at = self.tripped or wait > 0, now + timedelta(seconds=wait)


@given(st.lists(st.tuples(st.integers(0, 400), answers), max_size=60))
def test_whatever_is_answered_calls_are_made_only_when_the_law_allows(history: list[tuple[int, Answer]]) -> None:
    circuit, model, now = Circuit(), Model(), NOON
    for seconds, answer in history:
        now += timedelta(seconds=seconds)
        assert circuit.may_call(now) == (not model.gone and now >= model.ready_at)
        if circuit.may_call(now):
            circuit = circuit.probing(now, claim_seconds=15).after(now, answer)
            model.call(now, answer)


@given(st.integers(0, 10**9))
def test_the_open_time_never_exceeds_five_minutes(failures: int) -> None:
    assert 5 <= open_seconds(failures) <= 300
