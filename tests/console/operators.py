"""An operator at the console without a browser: asks for pages and reads what is written on them."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from typing import Self
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, OpenerDirector, Request, build_opener

from django.http import HttpResponse
from django.http.response import HttpResponseBase


class Reader(HTMLParser):
    """Reads a page: its words in order, and the cells of each table that has an id."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.links: dict[str, str] = {}
        self._tables: list[str] = []
        self._cell: list[str] | None = None
        self._link: str | None = None
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style"):
            self._silent += 1
        elif tag == "table":
            self._tables.append(given.get("id") or "")
        elif tag == "tr" and self._tables:
            self.tables.setdefault(self._tables[-1], []).append([])
        elif tag == "td":
            self._cell = []
        elif tag == "a":
            self._link = given.get("href")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._silent -= 1
        elif tag == "table":
            self._tables.pop()
        elif tag == "td" and self._cell is not None:
            self.tables[self._tables[-1]][-1].append(" ".join(self._cell))
            self._cell = None
        elif tag == "a":
            self._link = None

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if not text or self._silent:
            return
        self.words.append(text)
        if self._cell is not None:
            self._cell.append(text)
        if self._link is not None:
            self.links[text] = self._link


@dataclass(frozen=True)
class Page:
    """What an operator sees."""

    address: str
    status: int
    html: str

    @cached_property
    def reader(self) -> Reader:
        """What is written on the page, read at its first use: of most pages a status is asked."""
        reader = Reader()
        reader.feed(self.html)
        return reader

    @property
    def text(self) -> str:
        """All words of the page."""
        return " ".join(self.reader.words)

    @property
    def links(self) -> dict[str, str]:
        """Where each linked text leads."""
        return self.reader.links

    def table(self, name: str) -> list[list[str]]:
        """The cells of a table, row by row, without its heading."""
        return [row for row in self.reader.tables.get(name, []) if row]

    def figure(self, name: str) -> str:
        """A figure of the overview."""
        found = re.search(rf'id="{name}">([^<]*)<', self.html)
        assert found is not None, f"no figure {name} on {self.address}"
        return found[1]


def page_of(answer: HttpResponseBase) -> Page:
    """What Django's own client was answered, as an operator sees it."""
    assert isinstance(answer, HttpResponse)
    return Page("", answer.status_code, answer.content.decode())


class Staying(HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *_: object) -> None:
        return None


@dataclass
class Operator:
    """A caller that asks for pages of a console; `signed_in` makes one that may see them."""

    console: str
    cookies: CookieJar = field(default_factory=CookieJar)

    @cached_property
    def opener(self) -> OpenerDirector:
        """What asks, with the cookies got so far."""
        return build_opener(HTTPCookieProcessor(self.cookies))

    @cached_property
    def staying_opener(self) -> OpenerDirector:
        """The same, where a redirect is an answer."""
        return build_opener(HTTPCookieProcessor(self.cookies), Staying)

    def posts(self, path: str, form: dict[str, object]) -> Page:
        """What a form answers, with the CSRF token; a field may have several values."""
        token = next(cookie.value or "" for cookie in self.cookies if cookie.name == "csrftoken")
        return self.asks(f"{self.console}/console/{path}", {**form, "csrfmiddlewaretoken": token})

    def sees(self, path: str, **form: str) -> Page:
        """The page at a path below `/console/`, after redirects; with a form, what it answers."""
        return self.asks(f"{self.console}/console/{path}", dict(form))

    def follows(self, page: Page, words: str) -> Page:
        """The page that a link of another leads to."""
        base, _, _ = page.address.partition("?")
        link = page.links[words]
        return self.asks(base + link if link.startswith("?") else self.console + link, {})

    def asks(self, address: str, form: dict[str, object]) -> Page:
        """The page at an address."""
        return Page(*self._answer(address, form))

    def looks_at(self, path: str) -> tuple[int, str | None]:
        """The status of the page at a path below `/console/`, which is not read, and the path that it leads to."""
        base = f"{self.console}/console/"
        try:
            answer = self.staying_opener.open(base + path, timeout=20)
        except HTTPError as refusal:
            answer = refusal
        with answer:
            place = answer.headers["Location"]
        onward = urljoin(base + path, place) if place else ""
        return answer.status, onward.removeprefix(base) if onward.startswith(base) else None

    def _answer(self, address: str, form: dict[str, object]) -> tuple[str, int, str]:
        data = urlencode(form, doseq=True).encode() if form else None
        try:
            answer = self.opener.open(Request(address, data, {"Referer": address}), timeout=20)
        except HTTPError as refusal:
            answer = refusal
        with answer:
            return answer.url, answer.status, answer.read().decode()

    @classmethod
    def signed_in(cls, console: str, name: str, password: str) -> Self:
        """A caller that came in by the sign-in page."""
        operator = cls(console)
        operator.sees("login/")
        token = next(cookie.value or "" for cookie in operator.cookies if cookie.name == "csrftoken")
        page = operator.sees("login/", username=name, password=password, csrfmiddlewaretoken=token, next="/console/")
        assert page.address == f"{console}/console/", page.text
        return operator
