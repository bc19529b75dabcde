"""The application of a web process: static files, and the data plane's handler in front of Django's."""

import contextlib
from collections.abc import AsyncIterator, Callable

from mqbroker.api.handler import Handler
from mqbroker.api.routes import routes
from mqbroker.process import lifespan
from mqbroker.web import static_files
from mqbroker.web.django_handler import DjangoHandler
from mqbroker.web.static_files import StaticFiles
from mqbroker.wire.admission import Serve


def load() -> None:
    """Does the part of `handler` that needs no runtime, so that it is already done in a fork of this process."""
    static_files.paths()
    DjangoHandler()


def handler() -> Handler:
    """The handler of this process; its runtime must exist."""
    return Handler(routes, files=StaticFiles(), otherwise=DjangoHandler())


@contextlib.asynccontextmanager
async def serving(begin: Callable[[], object], *, is_known: bool) -> AsyncIterator[Serve]:
    """Within `lifespan.running`; calls `begin`, then yields the function that serves a request."""
    async with lifespan.running(is_known=is_known):
        found = handler()
        begin()
        yield found
