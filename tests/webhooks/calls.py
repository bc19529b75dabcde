"""How the tests call: a check, and the answer that decides it."""

from webhooks.caller import Caller
from webhooks.endpoint_answers import Answer

PAYLOAD = b'{"type": "transaction.check", "transactions": []}'
COMMIT = b'{"results": [{"transaction_id": "t1", "state": "COMMIT"}]}'
#: A deadline for servers that will not answer, in seconds.
SHORT = 1.0


async def ask(caller: Caller, url: str, secret: str, timeout_seconds: float = 5, payload: bytes = PAYLOAD) -> Answer:
    """One call, signed with one secret."""
    return await caller.post(url, payload, [secret], "msg_1", timeout_seconds)
