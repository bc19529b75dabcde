"""What a process remembers of its callers' keys."""

from mqbroker.rights import MAX_AUTHORIZATION, KeyRing
from tests.broker.running import API_KEY
from tests.store.keeper import Keeper


def test_a_key_among_many_blanks_is_good_and_not_remembered(keeper: Keeper) -> None:
    keys = KeyRing()
    plain = b"Bearer " + API_KEY.encode()
    wide = b"Bearer" + API_KEY.encode().rjust(MAX_AUTHORIZATION)

    callers = [keeper.do(keys.caller(header)) for header in (plain, wide)]

    assert callers[0] == callers[1]
    assert keys.known(plain) == callers[0]
    assert keys.known(wide) is None
