"""The accidents of orders, chosen by an order's number, so that each run has the same ones."""

import enum


class Accident(enum.Enum):
    NONE = "nothing goes wrong"
    COMMIT_LOST = "paid, and the commit is never sent"
    CRASH = "paid, and the process is killed before it can commit or answer"
    DECLINED = "the local transaction fails, and the rollback is sent"
    DECLINED_AND_ROLLBACK_LOST = "the local transaction fails, and the rollback is never sent"

    @property
    def fails_payment(self) -> bool:
        return self in (Accident.DECLINED, Accident.DECLINED_AND_ROLLBACK_LOST)

    @property
    def loses_end(self) -> bool:
        return self in (Accident.COMMIT_LOST, Accident.DECLINED_AND_ROLLBACK_LOST)


# Of every ten orders six are ordinary.
_OF_TEN = {
    2: Accident.COMMIT_LOST,
    4: Accident.CRASH,
    6: Accident.DECLINED,
    8: Accident.DECLINED_AND_ROLLBACK_LOST,
}


def of_order(number: int) -> Accident:
    return _OF_TEN.get(number % 10, Accident.NONE)
