"""The first ack of a process: its batch is sent again, as the process does not know the open segment yet."""

from delivery.errors import ReceiptExpired
from delivery.receipts import handles, settling
from delivery.receive import receives
from delivery.receive.receives import Receive
from store.commit import writer
from store.errors import Refusal
from tests.store.keeper import Keeper


def test_an_ack_beside_one_that_is_refused_is_done_and_answered_so(keeper: Keeper) -> None:
    keeper.send("orders", "order 1")

    async def run() -> list[Refusal | None]:
        [delivery] = await receives.receive("coupons", Receive(topic="orders"))
        held = handles.unpack(delivery.receipt_handle)
        assert held is not None
        ack = settling.Ack("coupons", [delivery.receipt_handle, handles.handle(*held[:-1], held.nonce + 1)])
        await writer.run(ack)
        return ack.outcomes()

    done, refused = keeper.do(run())

    assert done is None
    assert isinstance(refused, ReceiptExpired)
    assert keeper.sql("SELECT FROM receipt") == keeper.sql("SELECT FROM bundle") == []
