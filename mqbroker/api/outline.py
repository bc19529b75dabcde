"""Finds, in steps, the places of long texts and of list objects in a large JSON text."""

import re
import secrets
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from mqbroker.api import json_pieces
from mqbroker.api.json_bodies import no_json
from store.errors import MessageIllegal

Result = TypeVar("Result")
# A generator that does work in steps, and yields where other work may run.
Work = Generator[None, None, Result]
Span = tuple[int, int]

# The maximum bytes, values and objects of one decoding step (a body, or several objects), which takes at most 2 to 3
# ms.
AT_ONCE_BYTES = 512 * 1024
MANY_VALUES = 20_000
MANY_OBJECTS = 512
# The most values of one object, and of all fields beside the objects. A valid message has 16 KiB of keys of at least
# one byte, and 128 properties; a transaction of 128 messages with 128 properties each is one object of a bulk.
MOST_VALUES = 24_000
# The most values of all objects: 1,000 messages with 128 properties and 200 keys each have fewer.
MOST_VALUES_IN_ALL = 400_000
# The most objects of one list: a larger batch or bulk is refused anyway.
MOST_OBJECTS = 4096
MOST_DEPTH = 64
MOST_NAME_BYTES = 80
# The most bytes of an object, and of all fields beside the objects, without long texts.
MOST_BYTES = 5 * 1024 * 1024
# A message body of more bytes is a long text.
BODY_BYTES = 16 * 1024
BODIES = (b'"body"', b'"body_base64"')
# The longest valid text except a body: 16 KiB of which each byte is written as \u0061.
LONGEST_BYTES = 128 * 1024
# The tokens between two pauses: some 0.2 ms.
PAUSE_TOKENS = 512

TOKEN = re.compile(rb'"[^"]*"?|[\[\]{},]')
QUOTE, COMMA, OPENING, CLOSING = ord('"'), ord(","), b"{[", {ord("}"): ord("{"), ord("]"): ord("[")}
EMPTY = {QUOTE: b'""', ord("["): b"[]", ord("{"): b"{}"}
SPACES = b" \t\r\n"


class Excess(Exception):
    """A field has more values or bytes than a valid field; the argument is the number."""


class Outline:
    """The places of long texts in a JSON text, and of the objects in its list with a given name."""

    def __init__(self, body: bytes, name: str) -> None:
        self.objects: list[Span] = []
        self._body = body
        self._name = f'"{name}"'.encode() if name else b""
        # The mark that replaces a long text. It is random, so no caller can put it into a request.
        self._mark = secrets.token_hex(8)
        self._texts: list[Span] = []
        # Places between characters, at which a long text can be cut.
        self._cuts: list[int] = []
        # The lists with this name: where each begins and ends, and the numbers of its objects.
        self._lists: list[tuple[Span, Span]] = []
        self._values_of: list[int] = []
        # The state of the scan: the open brackets, where the open text, list and object begin, the last text.
        self._open = bytearray()
        self._text = self._list = self._object = -1
        self._last: Span = (0, 0)
        # The latest field with a list, an object or a long text: the field's name, and where the value begins.
        self._field, self._value = (0, 0), 0
        # The numbers of values: in the open object, in all other objects together, and outside of objects.
        self._values = self._values_in_all = self._values_beside = 0

    def scan(self) -> Work[None]:
        """Scans the body, piece by piece."""
        for at, masked in json_pieces.of(self._body):
            yield from self._scan_piece(at, masked)
            self._cuts.append(at + len(masked))
            yield
        if self._text >= 0 or self._open:
            raise no_json("Input data was truncated")

    def _scan_piece(self, at: int, masked: bytes) -> Work[None]:
        start = 0
        if self._text >= 0:
            start = masked.find(b'"') + 1
            if not start:
                return
            self._end_text(self._text, at + start)
        for number, token in enumerate(TOKEN.finditer(masked, start)):
            begin, end = token.span()
            sign = masked[begin]
            if sign == QUOTE:
                if end - begin == 1 or masked[end - 1] != QUOTE:
                    self._text = at + begin
                elif end - begin > BODY_BYTES:
                    self._end_text(at + begin, at + end)
                else:
                    self._last = at + begin, at + end
            elif sign == COMMA:
                self._count()
            elif sign in OPENING:
                self._enter(sign, at + begin)
            else:
                self._leave(sign, at + end)
            if not number % PAUSE_TOKENS:
                yield

    def _end_text(self, begin: int, end: int) -> None:
        name, self._last, self._text = self._last, (begin, end), -1
        is_value = self._body[name[1] : begin].strip(SPACES) == b":"
        if is_value and end - begin > BODY_BYTES and self._body[slice(*name)] in BODIES:
            self._texts.append((begin, end))
        elif end - begin > LONGEST_BYTES:
            if len(self._open) == 1 and is_value:
                self._field, self._value = name, begin
            raise Excess(f"a text of {end - begin} bytes: no text but a body of a message is so long")

    def _count(self) -> None:
        self._values += 1
        if self._values > MOST_VALUES or self._values + self._values_in_all > MOST_VALUES_IN_ALL:
            raise Excess(f"too many values: give {MOST_VALUES} at most, or {MOST_VALUES_IN_ALL} in many objects")

    def _enter(self, sign: int, at: int) -> None:
        self._count()
        depth = len(self._open)
        if depth >= MOST_DEPTH:
            raise no_json(f"it has more than {MOST_DEPTH} levels")
        if depth == 1:
            self._field, self._value = self._last, at
            if sign == ord("[") and self._body[slice(*self._last)] == self._name:
                self._list = at + 1
        elif depth == 2 and self._list >= 0 and sign == ord("{"):
            self._object = at
            self._values_beside, self._values = self._values, 0
        self._open.append(sign)

    def _leave(self, sign: int, at: int) -> None:
        if not self._open or self._open.pop() != CLOSING[sign]:
            raise no_json(f"a bracket is closed that is not open (byte {at - 1})")
        depth = len(self._open)
        if depth == 2 and self._object >= 0:
            self._end_object(at)
        elif depth == 1 and self._list >= 0:
            first = self._lists[-1][1][1] if self._lists else 0
            self._lists.append(((self._list, at - 1), (first, len(self.objects))))
            self._list = -1

    def _end_object(self, at: int) -> None:
        if len(self.objects) == MOST_OBJECTS:
            raise Excess(f"more than {MOST_OBJECTS} objects: give fewer at once")
        self.objects.append((self._object, at))
        self._values_of.append(self._values)
        self._values_in_all += self._values
        self._values, self._object = self._values_beside, -1

    def written(self, begin: int, end: int) -> bytes:
        """A part of the body with marks in place of long texts. Raises MessageIllegal if the part is too long."""
        parts: list[bytes] = []
        for number in self._texts_in(begin, end):
            since, until = self._texts[number]
            parts += (self._body[begin:since], b'"%s%d"' % (self._mark.encode(), number))
            begin = until
        return self._of_size(b"".join((*parts, self._body[begin:end])))

    def _of_size(self, part: bytes) -> bytes:
        if len(part) > MOST_BYTES:
            raise MessageIllegal(
                f"The request has {len(part)} bytes besides the bodies of its messages, the limit is {MOST_BYTES}."
            )
        return part

    def _texts_in(self, begin: int, end: int) -> range:
        return range(bisect_left(self._texts, (begin,)), bisect_left(self._texts, (end,)))

    def marks(self, within: Span) -> dict[str, Span]:
        """The long texts within a part of the body, by their marks."""
        return {f"{self._mark}{number}": self._texts[number] for number in self._texts_in(*within)}

    def parts(self, text: Span) -> Iterator[bytes]:
        """The content between the quotes of a long text, cut between characters."""
        begin, end = text
        cuts = self._cuts[bisect_left(self._cuts, begin + 2) : bisect_left(self._cuts, end)]
        for since, until in zip((begin + 1, *cuts), (*cuts, end - 1), strict=True):
            yield self._body[since:until]

    def beside(self) -> bytes:
        """The body in which each list of objects is empty, so that only the other fields are left."""
        return self._beside(len(self._body))

    def before_excess(self) -> tuple[str, bytes]:
        """The name of the field with too many values, and the part of the body before the field, as JSON without lists
        of objects. None if no field has too many values.
        """
        if not self._value:
            return "", b""
        name = self._body[slice(*self._field)][:MOST_NAME_BYTES].decode("utf-8", "replace").strip('"')
        return name, self._beside(self._value) + EMPTY[self._body[self._value]] + b"}"

    def _beside(self, until: int) -> bytes:
        parts: list[bytes] = []
        at = 0
        for (begin, end), (first, last) in self._lists:
            parts += (self.written(at, begin), self._between(begin, end, self.objects[first:last]))
            at = end
        return self._of_size(b"".join((*parts, self.written(at, until))))

    def _between(self, begin: int, end: int, objects: Sequence[Span]) -> bytes:
        """The text of a list without its objects and their commas; empty if the list contains only objects."""
        if not objects:
            return self.written(begin, end)
        ends = (begin, objects[0][0]), (objects[-1][1], end)
        found = [self.written(*gap).strip(SPACES) for gap in ends]
        for (_, before), (behind, _) in pairwise(objects):
            if self._body[before:behind] != b"," and (gap := self.written(before, behind).strip(SPACES)) != b",":
                found.append(gap.strip(b"," + SPACES) or b",")
        return b",".join(filter(None, found))

    def groups(self) -> Iterator[bytes]:
        """Yields the objects of the list, several at a time as a JSON list."""
        parts: list[bytes] = []
        size = values = 0
        for span, count in zip(self.objects, self._values_of, strict=True):
            part = self.written(*span)
            is_full = size + len(part) > AT_ONCE_BYTES or values + count > MANY_VALUES or len(parts) == MANY_OBJECTS
            if parts and is_full:
                yield b"[%s]" % b",".join(parts)
                parts, size, values = [], 0, 0
            parts.append(part)
            size, values = size + len(part), values + count
        if parts:
            yield b"[%s]" % b",".join(parts)
