"""A database becomes a cell by `manage.py cells add`, or is refused with what to do."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from mqbroker.embedded import commands
from tests.broker import databases, forks
from tests.broker.running import RunningBroker
from tests.cells.installation import Installation, identity_of, rows_of

OLD_KEY, NEW_KEY = "a-text-of-more-than-32-characters-kept-apart", "another-text-of-more-than-32-characters"
ENDPOINT = """
WITH made AS (
    INSERT INTO producer_group (name, reject_transaction_message, checks_paused) VALUES ('shop', false, false)
    RETURNING id
)
INSERT INTO endpoint (group_id, url, max_batch, timeout_seconds, concurrency, secret, state, failures)
SELECT id, 'http://127.0.0.1:9/', 1, 5, 16, 'whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0', 'healthy', 0 FROM made
"""
EMPTY = "Give an empty database: CREATE DATABASE makes one."
# Copies of one prepared database would be copies of one installation.
BELONGS_ELSEWHERE = "UPDATE cell_identity SET installation = gen_random_uuid()"


@contextmanager
def another(prepared: str) -> Iterator[str]:
    """A database of another installation, which has an API key."""
    with databases.copied(prepared) as url:
        run_there(BELONGS_ELSEWHERE)(url)
        yield url


def test_a_cell_that_was_added_belongs_to_the_installation_and_has_its_configuration(
    installation: Installation,
) -> None:
    _, _, ours = identity_of(installation.broker.database_url)

    assert identity_of(installation.cells["c1"]) == (1, 0, ours)
    assert installation.differences("c1") == {}
    assert installation.state("c1") == "ready"
    assert installation.state("c0") == "takes new topics"


@pytest.fixture(scope="module")
def sealed(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Another installation, whose secrets are sealed, with a cell c1 and an endpoint."""
    with another(prepared) as control, databases.fresh() as cell:
        settings = {"MQBROKER_SECRETS_KEYS": OLD_KEY}
        folder = tmp_path_factory.mktemp("sealed")
        found = Installation(RunningBroker(folder, control, "redis://127.0.0.1:1/0", settings, tasks=False))
        found.add("c1", cell)
        with psycopg.connect(control) as session:
            session.execute(ENDPOINT)
        assert found.run("sync", "c1").stdout == "c1: 2 rows changed.\n"
        yield found


def test_the_urls_of_cells_and_the_secrets_in_their_copies_are_sealed(sealed: Installation) -> None:
    with psycopg.connect(sealed.broker.database_url) as session:
        [[url]] = session.execute("SELECT url FROM cell WHERE name = 'c1'").fetchall()
    [endpoint] = rows_of(sealed.cells["c1"])["endpoint"]

    assert "postgresql://" not in url
    assert "whsec_" not in endpoint["secret"]


def test_a_new_key_seals_the_copies_too(sealed: Installation) -> None:
    def reseal(keys: str) -> subprocess.CompletedProcess[str]:
        return forks.run(commands.manage("reseal"), sealed.broker.environment | {"MQBROKER_SECRETS_KEYS": keys})

    with_both = reseal(f"{NEW_KEY},{OLD_KEY}")
    with_the_new_one = reseal(NEW_KEY)

    # The URL, the secret, and its copy.
    assert with_both.stdout == "3 secrets resealed, 0 replaced.\n"
    assert (with_the_new_one.returncode, with_the_new_one.stdout) == (0, "0 secrets resealed, 0 replaced.\n")


def test_an_add_that_was_killed_is_repeated(installation: Installation) -> None:
    with databases.fresh() as url:
        installation.add("c2", url)
        installation.add("c2", url)
        # Before the control had committed its row.
        with psycopg.connect(installation.broker.database_url) as session:
            session.execute("DELETE FROM cell WHERE name = 'c2'")
        installation.add("c2", url)

        assert installation.state("c2") == "ready"
        assert installation.run("remove", "c2").returncode == 0
    assert installation.refusal("remove", "c2") == "There is no cell c2: `cells list` shows all cells."


def test_a_cell_keeps_its_database_and_may_have_another_url(installation: Installation) -> None:
    with databases.fresh() as other:
        refusal = installation.refusal("add", "c1", other)
        installation.add("c1", f"{installation.cells['c1']}?application_name=moved")

        with psycopg.connect(other) as session:
            tables = session.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchall()

    assert refusal == (
        "The URL does not lead to the database of the cell c1: give the present URL of this database, or "
        "add the other database under a new cell name."
    )
    assert tables == []
    assert installation.state("c1") == "ready"


def test_an_older_state_of_a_cell_comes_back_with_the_configuration_that_was_made_since(
    installation: Installation,
) -> None:
    now = installation.cells["c1"]
    with databases.copied(now) as restored:
        with psycopg.connect(installation.broker.database_url) as session:
            session.execute("INSERT INTO topic (name, queues, permission) VALUES ('since', 1, 'rw')")
        try:
            installation.add("c1", restored)

            assert installation.differences("c1") == {}
            assert installation.state("c1") == "ready"
        finally:
            installation.add("c1", now)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("add", "C2", "postgresql://127.0.0.1/x"),
            "'C2' is not a valid name of a cell: 1 to 30 small letters, digits and -, ",
        ),
        (
            ("add", "c0", "postgresql://127.0.0.1/x"),
            "c0 is the name of the control, whose URL is the setting DATABASE_URL: give the new cell ",
        ),
        (("add", "c2", "mysql://127.0.0.1/x"), "The URL of the cell c2 does not name a PostgreSQL database: give "),
        (("add", "c2", "postgresql://127.0.0.1:1/x"), "The URL of the cell c2 does not lead to a database: "),
        (("remove", "c0"), "c0 is the control, which every installation needs: the control cannot be removed."),
    ],
)
def test_what_is_no_cell_is_refused(installation: Installation, words: tuple[str, ...], sentence: str) -> None:
    assert installation.refusal(*words).startswith(sentence)


def test_a_url_is_read_where_no_other_user_of_the_machine_sees_it(installation: Installation) -> None:
    done = subprocess.run(
        commands.manage("cells", "add", "c2", "-"),
        input="mysql://127.0.0.1/x\n",
        env=installation.broker.environment,
        cwd=commands.ROOT,
        capture_output=True,
        text=True,
    )

    assert done.stderr.startswith("CommandError: The URL of the cell c2 does not name a PostgreSQL database: ")


def test_a_cell_with_topics_is_not_removed(installation: Installation) -> None:
    with psycopg.connect(installation.broker.database_url) as session:
        session.execute("INSERT INTO topic (name, queues, permission, cell_id) VALUES ('kept', 1, 'rw', 1)")
    installation.run("sync", "c1")

    assert installation.refusal("remove", "c1") == (
        "The cell c1 still has 1 topic: delete the topics and their messages first."
    )


def test_a_database_of_this_installation_joins_once(installation: Installation) -> None:
    control, cell = installation.broker.database_url, installation.cells["c1"]

    assert installation.refusal("add", "c2", control) == (
        f"The database of the cell c2 is the control itself, or a copy of it. {EMPTY}"
    )
    assert installation.refusal("add", "c2", cell) == (
        f"The database of the cell c2 is already in use as the cell c1. {EMPTY}"
    )


def test_a_database_of_another_installation_is_refused(installation: Installation, prepared: str) -> None:
    with another(prepared) as url:
        refusal = installation.refusal("add", "c2", url)
        untouched = identity_of(url)

    assert refusal == f"The database of the cell c2 holds API keys of another installation. {EMPTY}"
    assert untouched[:2] == (0, 0)


def run_there(statement: str) -> Callable[[str], None]:
    def run(url: str) -> None:
        with psycopg.connect(url, autocommit=True) as session:
            session.execute(statement)

    return run


def make_read_only(url: str) -> None:
    place = urlsplit(url)
    with psycopg.connect(url, autocommit=True) as session:
        name = sql.Identifier(place.path[1:])
        session.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))


def install_citus(url: str) -> None:
    """Its row in the catalog: the extension itself is not installed with the server."""
    place = urlsplit(url)
    superuser = place._replace(netloc=place.netloc.replace("mqbroker:", "postgres:", 1)).geturl()
    with psycopg.connect(superuser, autocommit=True) as session:
        session.execute("SET allow_system_table_mods = on")
        session.execute("INSERT INTO pg_extension VALUES (99999, 'citus', 10, 2200, false, '13.0', NULL, NULL)")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (make_read_only, "The database of the cell c2 cannot be used: the database is read-only: "),
        (
            install_citus,
            "The database of the cell c2 cannot be used: the database has the extension citus, through which ",
        ),
        (run_there("CREATE TABLE shoes ()"), "The database of the cell c2 holds tables of another application. Give "),
    ],
    ids=["read-only", "citus", "other tables"],
)
def test_a_database_that_cannot_keep_messages_is_refused(
    installation: Installation, spoil: Callable[[str], None], sentence: str
) -> None:
    with databases.fresh() as url:
        spoil(url)

        assert installation.refusal("add", "c2", url).startswith(sentence)


def test_a_database_with_citus_is_refused_at_the_start_too(installation: Installation) -> None:
    with databases.fresh() as url:
        install_citus(url)

        done = forks.run(commands.manage("prepare"), installation.broker.environment | {"DATABASE_URL": url})

    assert done.returncode == 1
    assert "the database has the extension citus, through which acknowledged messages are lost" in done.stderr


def test_a_database_of_another_version_is_refused(installation: Installation, prepared: str) -> None:
    earlier: AbstractContextManager[str] = databases.copied(prepared)
    with earlier as url:
        run_there("DELETE FROM django_migrations WHERE name = '0007_cells'")(url)

        assert installation.refusal("add", "c2", url) == (
            "The tables of the database of the cell c2 belong to another version of the broker: the difference "
            f"is the migration store.0007_cells. {EMPTY} To keep the data of this database, first migrate it "
            "with the broker that uses it."
        )
