"""A source that cannot be drained is refused with what mends it, or shown as failing, and never with its password."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.wire import Answer
from tests.outboxes import sources
from tests.outboxes.conftest import Shop, table
from tests.outboxes.roles import Roles
from tests.outboxes.sources import BROKEN, PASSWORD, SERVERS


@pytest.fixture
def roles(shop: Shop) -> Iterator[Roles]:
    """The roles of the shop's database; nothing is registered."""
    with Roles(shop.url) as made:
        yield made


def puts(shop: Shop, url: str, **fields: object) -> Answer:
    """Registers an outbox, whatever the answer."""
    return shop.operator.put(f"/v1/outboxes/{shop.name}", url=url, topics=[shop.topic], **fields)


def test_a_table_that_is_not_that_of_the_page_is_refused_with_what_mends_it(shop: Shop, roles: Roles) -> None:
    wrong = {}
    for name, (broken, *words) in BROKEN.items():
        schema = characters.name("shop").replace("-", "_")
        sources.make(roles, shop.url, table(), schema, broken)
        answer = puts(shop, roles.url(roles.drain), schema=schema)
        found = str((answer.document or {}).get("detail"))
        if answer.status != 422 or not all(word.format(schema=schema) in found for word in words):
            wrong[name] = answer.status, found

    assert wrong == {}
    assert shop.operator.get(f"/v1/outboxes/{shop.name}").status == 404


def test_the_statement_that_a_refusal_names_mends_it(shop: Shop, roles: Roles) -> None:
    with psycopg.connect(shop.url, user="postgres", autocommit=True) as session:
        session.execute(f"REVOKE DELETE ON mqbroker_outbox FROM {roles.drain}".encode())
        refused = puts(shop, roles.url(roles.drain)).problem["detail"]
        [_, mend] = refused.removesuffix(".").rsplit(": ", 1)
        assert mend.startswith("GRANT SELECT, DELETE ON public.mqbroker_outbox TO ")
        session.execute(mend.encode())

    assert puts(shop, roles.url(roles.drain)).status == 201


def test_a_table_that_breaks_later_is_shown_as_failing_and_other_outboxes_flow(shop: Shop, roles: Roles) -> None:
    shop.register(url=roles.url(roles.drain))
    other = Shop(shop.operator, shop.url, shop.broker, topic=shop.topic, group=shop.group)
    sources.make(roles, shop.url, table(), "another", "SELECT 1")
    other.register(url=roles.url(roles.drain), schema="another")
    with psycopg.connect(shop.url, user="postgres", autocommit=True) as session:
        session.execute("ALTER TABLE mqbroker_outbox ENABLE ROW LEVEL SECURITY")

    # What PostgreSQL says comes first; the next connection finds what mends it.
    obstacle = "row level security hides rows of mqbroker_outbox"
    eventually(lambda: obstacle in (shop.outbox["failure"] or ""), within_seconds=60)
    with psycopg.connect(shop.url, user="postgres", autocommit=True) as session:
        session.execute("SELECT another.mq_send(%s, 'good')", [shop.topic])
    assert [message["body"] for message in shop.receives_all(1)] == ["good"]

    with psycopg.connect(shop.url, user="postgres", autocommit=True) as session:
        session.execute("ALTER TABLE mqbroker_outbox DISABLE ROW LEVEL SECURITY")
        session.execute(sql.SQL("SELECT mq_send({}, 'late')").format(shop.topic))
    assert [message["body"] for message in shop.receives_all(1)] == ["late"]
    eventually(lambda: shop.outbox["failure"] is None)
    other.operator.delete(f"/v1/outboxes/{other.name}")


# Each with the status, and a word of the refusal or of the failure.
PLACES = {
    "nobody listens": ("postgresql://shop:{password}@127.0.0.1:9/shop", 201, "refused"),
    "a name without an address": ("postgresql://shop:{password}@nowhere.invalid/shop", 201, "nowhere.invalid"),
    "of two servers none is there": ("postgresql://shop:{password}@127.0.0.1:9,127.0.0.1:10/shop", 201, "refused"),
    "a private network": ("postgresql://shop:{password}@10.0.0.1/shop", 422, "OUTBOX_ALLOWED_NETWORKS"),
    "a link-local address": ("postgresql://shop:{password}@169.254.169.254/shop", 422, "link-local"),
    "another form of an address": ("postgresql://shop:{password}@0x0a000001/shop", 422, "a private address"),
    "no such database": ("postgresql://{user}:{right}@{server}/no_such_{password}", 422, "does not exist"),
    "no such role": ("postgresql://nobody:{password}@{server}/postgres", 422, "nobody"),
    "a percent sign": ("postgresql://shop:{password}%zz@{server}/shop", 422, "url cannot be read"),
    "a capital in the scheme": ("Postgresql://shop:{password}@{server}/shop", 422, "url does not name"),
    "an @ in the password": ("postgresql://shop:p@{password}@{server}/shop", 422, "%40"),
    "a / in the password": ("postgresql://shop:p/{password}@{server}/shop", 422, "%2F"),
    "a socket file": ("postgresql://shop:{password}@%2Ftmp/shop", 422, "socket"),
    "a socket file in the query": ("postgresql://shop:{password}@/shop?host=/tmp", 422, "socket"),
    "no server": ("postgresql://shop:{password}@/shop", 422, "no server"),
    "no user": ("postgresql://:{password}@{server}/shop", 422, "no user"),
    "no password": ("postgresql://shop@{server}/shop", 422, "no password"),
    "no database": ("postgresql://shop:{password}@{server}", 422, "no database"),
    "an option that names a file": ("postgresql://shop:{password}@{server}/shop?sslkey=/etc/passwd", 422, "sslkey"),
    "an option of no value": ("postgresql://shop:{password}@{server}/shop?sslmode={password}", 422, "sslmode"),
    "a port of letters": ("postgresql://shop:{password}@127.0.0.1:{password}/shop", 422, "port"),
    "a blank": ("host=127.0.0.1 user=shop password={password} dbname=shop", 422, "blank"),
}


def test_a_place_that_cannot_work_is_refused_and_one_that_is_away_is_shown_as_failing(shop: Shop) -> None:
    parts = urlsplit(shop.url)
    known = {"user": parts.username, "right": parts.password, "server": parts.netloc.rpartition("@")[2]}
    wrong = {}
    for name, (url, status, word) in PLACES.items():
        answer = puts(shop, url.format(password=PASSWORD, **known))
        found = answer.document["failure"] if answer.status < 300 else answer.document["detail"]
        if (answer.status if answer.status != 200 else 201) != status or word not in str(found):
            wrong[name] = answer.status, answer.document
        if PASSWORD in json.dumps(answer.document) and name != "no such database":
            wrong[name] = 0, f"it shows the password: {answer.document}"

    assert wrong == {}
    require_hidden(shop)


SILENT = (
    "a server that says nothing",
    "a server that ends the connection",
    "a server that says nothing after its greeting",
)


def test_a_server_that_is_no_postgresql_is_refused_or_shown_as_failing(shop: Shop) -> None:
    with ExitStack() as stack:
        for name, answer in SERVERS.items():
            port = stack.enter_context(sources.server(answer))
            found = puts(shop, f"postgresql://shop:{PASSWORD}@127.0.0.1:{port}/shop")
            reason = found.document["failure"] if found.status < 300 else found.document["detail"]
            assert reason, name
            assert found.status in ((200, 201) if name in SILENT else (422,)), name

    require_hidden(shop)


def require_hidden(shop: Shop) -> None:
    """No place shows the password."""
    shown = [shop.operator.page(path).text for path in ("/v1/outboxes", "/metrics")] + [shop.broker.log()]
    with psycopg.connect(shop.broker.database_url) as audit:
        rows = audit.execute("SELECT to_jsonb(e)::text FROM audit_entry AS e WHERE target = %s", [shop.name]).fetchall()
    assert not any(PASSWORD in text for text in [*shown, *(row for (row,) in rows)] if "no_such_" not in text)


def test_the_fields_of_a_place_are_shown_and_several_hosts_truly(shop: Shop) -> None:
    parts = urlsplit(shop.url)
    port, database = parts.port, parts.path[1:]
    fields = {"port": port, "database": database, "user": parts.username}

    one = shop.register()
    assert {name: one[name] for name in fields} == fields
    assert one["server"] == parts.hostname
    two = shop.register(url=shop.url.replace(f"@{parts.hostname}:{port}", f"@127.0.0.1:9,{parts.hostname}:{port}"))
    assert (two["server"], two["port"], two["failure"]) == (f"127.0.0.1:9,{parts.hostname}:{port}", None, None)
    shop.register(url=f"{shop.url}?target_session_attrs=read-write")
    with shop.session() as session:
        session.execute("SELECT mq_send(%s, 'x')", [shop.topic])
    assert len(shop.receives_all(1)) == 1
