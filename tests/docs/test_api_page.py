"""The reference of the API in docs/ is the one that the code has."""

from tools.generate import api_page


def test_the_page_is_that_of_the_code() -> None:
    assert api_page.PAGE.read_text(encoding="utf-8") == api_page.page(), "run python -m tools.generate.api_page"


def test_each_operation_has_its_request_and_its_answer() -> None:
    page = api_page.page()

    assert page.count("\n## `") == page.count("```http") > 60
    assert "POST /v1/transactions\n{" in page
    assert '"transaction_id":"01900000-0000-7000-8000-' in page
