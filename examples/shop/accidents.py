"""Accidents that happen to orders. The order's number selects the accident, so each run has the same accidents."""

import enum


class Accident(enum.Enum):
    """The accident of an order, by the last digit of its number. Six of ten orders have no accident."""

    COMMIT_LOST = 2
    CRASH = 4
    DECLINED = 6
    DECLINED_AND_ROLLBACK_LOST = 8


LOSES_END = (Accident.COMMIT_LOST, Accident.DECLINED_AND_ROLLBACK_LOST)
DECLINES = (Accident.DECLINED, Accident.DECLINED_AND_ROLLBACK_LOST)


def of_order(number: int) -> Accident | None:
    return next((accident for accident in Accident if accident.value == number % 10), None)
