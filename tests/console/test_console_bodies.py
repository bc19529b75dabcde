"""Promises of the look at a body: text is text, bytes are bytes, and nothing is ever refused."""

import zlib

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from console.pages import bodies


@given(st.text(st.characters(exclude_categories=("C", "Z"))))
def test_text_is_shown_as_it_is(text: str) -> None:
    raw = text.encode()

    shown = bodies.preview(raw, len(raw))

    assert shown == bodies.Preview(text, is_text=True, size=len(raw), cut=False)


@given(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1), st.integers(0, 3))
def test_a_character_that_the_cut_went_through_is_left_out(text: str, lost: int) -> None:
    raw = text.encode()
    first = raw[: max(1, len(raw) - lost)]

    shown = bodies.preview(first, len(raw) + 1)

    assert text.startswith(shown.text) if shown.is_text else len(first) < len(text[0].encode())


@given(st.binary(max_size=bodies.PREVIEW_BYTES))
def test_any_bytes_are_shown(raw: bytes) -> None:
    shown = bodies.preview(raw, len(raw))

    if not shown.is_text:
        lines = shown.text.splitlines()
        assert bytes.fromhex("".join(line[6:54] for line in lines)) == raw


def test_a_control_character_makes_it_bytes() -> None:
    shown = bodies.preview(b"a\x1b[31mb", 7)

    assert not shown.is_text
    assert " ".join(shown.text.split()) == "0000 61 1b 5b 33 31 6d 62 a.[31mb"
    assert bodies.preview(b"two\r\nlines\t", 11).is_text


@pytest.mark.parametrize("cut", [None, 4096])
@pytest.mark.parametrize("form", ["zlib", "zstd"])
def test_a_compressed_body_is_shown_unpacked_also_where_only_its_beginning_is_read(form: str, cut: int | None) -> None:
    text = " ".join(str(number) for number in range(30_000))
    raw = (zlib.compress if form == "zlib" else zstd.compress)(text.encode())

    shown = bodies.preview(raw[:cut], len(raw), form)

    assert (shown.compression, shown.size, shown.cut) == (form, len(raw), True)
    # zstd unpacks whole blocks, of which the beginning may hold none.
    assert shown.text == text[: bodies.PREVIEW_BYTES] or (form == "zstd" and cut and not shown.text)


def test_a_short_compressed_body_is_shown_whole() -> None:
    shown = bodies.preview(raw := zlib.compress(b"order " * 100), len(raw), "zlib")

    assert (shown.text, shown.cut) == ("order " * 100, False)
