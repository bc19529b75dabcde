"""What cannot be shown is refused by a page of the console's, with a way out."""

from django.contrib.auth.models import User
from django.test import Client, override_settings

from access import roles
from tests.console.operators import page_of

OVERVIEW = {"To the overview": "/console/"}


def test_a_page_that_does_not_exist_is_named_with_a_way_out(admin_client: Client) -> None:
    page = page_of(admin_client.get("/console/nothing/%3Cb%3E/"))

    assert page.status == 404
    assert page.text.startswith("Not found | mqbroker console Not found There is no /console/nothing/%3Cb%3E/")
    assert page.links == OVERVIEW


def test_a_page_that_a_role_may_not_see_says_who_changes_it(client: Client, django_user_model: type[User]) -> None:
    bob = django_user_model.objects.create(username="bob")
    roles.assign(bob, roles.VIEWER, bodies=True)
    client.force_login(bob)

    page = page_of(client.get("/console/users/"))

    assert page.status == 403
    assert "Your role does not allow this." in page.text
    assert page.links == OVERVIEW


def test_a_form_of_an_earlier_session_says_that_nothing_was_changed(
    admin_user: User, django_user_model: type[User]
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    form = {"action": "user.make", "target": "eve", "role": "admin", "reason": "why", "csrfmiddlewaretoken": "a" * 64}

    page = page_of(client.post("/console/actions/once/", form))

    assert page.status == 403
    assert "nothing was changed" in page.text
    assert page.links == OVERVIEW
    assert not django_user_model.objects.filter(username="eve").exists()


@override_settings(ALLOWED_HOSTS=["mq.example.org"])
def test_a_host_that_is_not_among_the_allowed_ones_is_named_with_the_setting() -> None:
    answer = Client().get("/v1/schema", headers={"host": "10.0.0.7"})

    assert answer.status_code == 400
    assert answer.json()["detail"] == (
        "Host '10.0.0.7' is not one of MQBROKER_ALLOWED_HOSTS: call by one, or add this one."
    )
