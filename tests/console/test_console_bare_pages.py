"""What cannot be shown is refused by a page of the console's, with a way out."""

from tests.console.operators import Operator

OVERVIEW = {"To the overview": "/console/"}


def test_a_page_that_does_not_exist_is_named_with_a_way_out(ada: Operator) -> None:
    page = ada.sees("nothing/%3Cb%3E/")

    assert page.status == 404
    assert page.text.startswith("Not found | mqbroker console Not found There is no /console/nothing/%3Cb%3E/")
    assert page.links == OVERVIEW


def test_a_page_that_a_role_may_not_see_says_who_changes_it(bob: Operator) -> None:
    page = bob.sees("auth/user/")

    assert page.status == 403
    assert "Your role does not allow this." in page.text
    assert page.links == OVERVIEW


def test_a_form_of_an_earlier_session_says_that_nothing_was_changed(ada: Operator) -> None:
    page = ada.sees("auth/user/add/", username="eve", role="admin", csrfmiddlewaretoken="a" * 64)

    assert page.status == 403
    assert "nothing was changed" in page.text
    assert page.links == OVERVIEW
    assert "eve" not in ada.sees("auth/user/").text
