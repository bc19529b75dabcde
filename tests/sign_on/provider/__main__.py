"""Makes the provider's tables, client and users, and serves it: `python -m tests.sign_on.provider PORT CALLBACK`."""

import socketserver
import sys
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django

PASSWORD = "known to the provider"


class Threads(socketserver.ThreadingMixIn, WSGIServer):
    """A thread for each connection: a browser keeps idle ones."""

    daemon_threads = True


class Quiet(WSGIRequestHandler):
    """Logs no request."""

    def log_message(self, *_: Any) -> None:
        pass


def main(port: str, callback: str) -> None:
    django.setup()
    from django.contrib.auth.models import User
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application
    from oauth2_provider.models import Application

    call_command("migrate", verbosity=0)
    Application.objects.create(
        client_id="console",
        client_secret="secret of the console",
        client_type="confidential",
        authorization_grant_type="authorization-code",
        algorithm="RS256",
        redirect_uris=callback,
        skip_authorization=True,
    )
    for name in ("mia", "noa"):
        User.objects.create_user(name, f"{name}@example.org", PASSWORD, first_name=name.title(), is_staff=True)
    application = StaticFilesHandler(get_wsgi_application())
    with make_server("127.0.0.1", int(port), application, Threads, Quiet) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
