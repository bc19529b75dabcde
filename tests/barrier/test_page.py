"""The contract on its page is what the client does."""

from mqbroker_client.barrier import create_statements
from mqbroker_client.barrier.dialects import KEPT_DAYS, LOCK_WAIT_SECONDS, POSTGRESQL

from tests.docs.pages import page

PAGE = page("docs/barrier.md").text


def plain(text: str) -> str:
    """Without line breaks, indents, and blanks at brackets."""
    return " ".join(text.split()).replace("( ", "(")


def test_the_statements_of_the_page_are_the_clients() -> None:
    for statement in (
        *create_statements("postgresql"),
        POSTGRESQL.insert_commit,
        POSTGRESQL.insert_rollback,
        *POSTGRESQL.waiting(LOCK_WAIT_SECONDS).begin,
    ):
        assert plain(statement) in plain(PAGE)


def test_the_page_says_how_long_rows_are_kept() -> None:
    assert f"Rows are deleted after {KEPT_DAYS} days" in PAGE
