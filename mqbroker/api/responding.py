"""Sends answers: complete, or in parts if their messages are large, with the request's id."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from mqbroker.api import codings, unread
from mqbroker.api.answers import PART_BYTES, WHOLE_BYTES, Answer, MessagesAnswer
from mqbroker.api.bodies import Body
from mqbroker.api.codings import Coder
from mqbroker.api.unread import Unread
from mqbroker.wire.arriving import Gone
from mqbroker.wire.exchange import Exchange
from store.process import pacing, runtime


async def send(exchange: Exchange, answer: Answer, body: Body) -> None:
    """Sends an answer. If the caller has hung up, returns the answer's deliveries or checks to their group."""
    if answer.give_back is not None:
        # A hang-up that arrived during encoding becomes visible within two turns of the event loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if await answer.give_back(exchange.gone):
            return
    if exchange.namespace is not None:
        await answer.show_in_steps(exchange.namespace)
    if isinstance(answer, MessagesAnswer):
        body.release()
        await _write_page(exchange, answer)
        return
    await _encode(exchange, answer)
    if len(answer.content) > unread.SMALL_BYTES:
        body.release()
        has_left = await runtime.control(Unread).send(exchange, answer.status, answer.headers, answer.content)
        if not has_left and answer.give_back is not None:
            await answer.give_back(exchange.gone)
    else:
        _write(exchange, answer)
        body.release()


async def _encode(exchange: Exchange, answer: Answer) -> None:
    """Encodes a whole answer in a coding that the caller accepts."""
    coding = codings.wanted(exchange.headers, answer.headers, len(answer.content))
    if coding is None:
        return
    content, coder = answer.content, codings.coder(coding)
    parts = (coder.compress(content[start : start + PART_BYTES]) for start in range(0, len(content), PART_BYTES))
    answer.content = b"".join([part async for part in pacing.each(parts)]) + coder.flush()
    answer.headers = (*answer.headers, *codings.named(coding))


async def _write_page(exchange: Exchange, page: MessagesAnswer) -> None:
    """Sends a page in parts, each after the previous part has been sent. Small requests are served between the parts.

    If the caller hangs up before the last part, or is cut off because it reads too slowly, it has received no message,
    because half an object is not JSON. Then its deliveries or checks are returned to their group.
    """
    coding = codings.wanted(exchange.headers, page.headers, WHOLE_BYTES)
    headers = page.headers if coding is None else (*page.headers, *codings.named(coding))
    exchange.start(page.status, (*headers, (b"x-request-id", exchange.request_id)))
    try:
        await _write_parts(exchange, page, None if coding is None else codings.coder(coding))
    except Gone:
        if page.give_back is not None:
            await page.give_back(exchange.gone)


async def _write_parts(exchange: Exchange, page: MessagesAnswer, coder: Coder | None) -> None:
    parts = page.parts()
    is_last = False
    while not is_last:
        async with pacing.step():
            part = next(parts, b"")
            is_last = not part
            if coder is not None:
                part = coder.flush() if is_last else coder.compress(part)
        if part:
            if page.give_back is not None and exchange.gone.done():
                raise Gone
            await exchange.send(part)
    exchange.end()


def end(exchange: Exchange, answer: Answer, body: Body) -> Coroutine[Any, Any, None] | None:
    """Sends an answer and frees the request's bytes. For a large answer, the returned coroutine does this."""
    if len(answer.content) > unread.SMALL_BYTES:
        return send(exchange, answer, body)
    if exchange.namespace is not None:
        answer.show(exchange.namespace)
    exchange.answer(answer.status, answer.headers, answer.content)
    body.release()
    return None


def write(exchange: Exchange, answer: Answer) -> None:
    """Sends a whole answer with the request's id."""
    if exchange.namespace is not None:
        answer.show(exchange.namespace)
    _write(exchange, answer)


def _write(exchange: Exchange, answer: Answer) -> None:
    exchange.answer(answer.status, answer.headers, answer.content)
