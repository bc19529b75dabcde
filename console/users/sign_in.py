"""The forms with a password. Before hashing, each form checks whether another attempt is allowed."""

from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.views import PasswordChangeView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from unfold.forms import AdminOwnPasswordChangeForm, AuthenticationForm

from access import audit, roles
from console.users import sign_in_attempts
from console.users.signing import signed
from store.errors import SystemBusy

RETRY_SECONDS = 5


class SignInForm(AuthenticationForm):  # type: ignore[misc]  # Unfold ships no types
    """The console's sign-in form. `wait_seconds` is above 0 if the password was not checked."""

    wait_seconds = 0

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = self.cleaned_data
        if not (given.get("username") and given.get("password")):
            return given
        uses = sign_in_attempts.to_sign_in(self.request, given["username"])
        self.wait_seconds = sign_in_attempts.take(uses)
        if self.wait_seconds:
            raise too_many("this name or from this address", self.wait_seconds)
        try:
            cleaned: dict[str, Any] = super().clean()
        except SystemBusy as refusal:
            sign_in_attempts.give_back(uses)
            self.wait_seconds = RETRY_SECONDS
            raise ValidationError(refusal.detail, code="busy") from refusal
        sign_in_attempts.give_back(uses)
        # A sign-in deletes all expired sessions, so the table keeps only sessions of the last two weeks.
        self.request.session.clear_expired()
        return cleaned

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        if roles.role_in(user) is None:
            raise ValidationError("This user has no role yet: an admin gives one at Users.", code="no_role")


class OwnPasswordForm(AdminOwnPasswordChangeForm):  # type: ignore[misc]  # Unfold ships no types
    """The form to change one's own password. `wait_seconds` is above 0 if the old password was not checked."""

    wait_seconds = 0

    def clean_old_password(self) -> str:
        uses = sign_in_attempts.to_change_password(self.user.pk)
        self.wait_seconds = sign_in_attempts.take(uses)
        if self.wait_seconds:
            raise too_many("this user", self.wait_seconds)
        old: str = super().clean_old_password()
        sign_in_attempts.give_back(uses)
        return old


class OwnPasswordView(PasswordChangeView):
    """Changes one's own password, with an entry in the audit."""

    def form_valid(self, form: Any) -> HttpResponse:
        # The form hashes before the transaction begins, because hashing must not hold a connection.
        user = form.save(commit=False)
        with audit.change(signed(self.request), "user.password", user.get_username()):
            user.save()
        update_session_auth_hash(self.request, user)
        return HttpResponseRedirect(self.get_success_url())


def too_many(whose: str, wait_seconds: int) -> ValidationError:
    """The error of a form when too many attempts were made and the password is not checked."""
    return ValidationError(
        f"Too many wrong passwords for {whose}: try again in {wait_seconds} s.", code="too_many_attempts"
    )


def with_wait(request: HttpRequest, answer: HttpResponseBase) -> HttpResponseBase:
    """The answer of a page with a password form: 429 with Retry-After when the password was not checked.

    After a right password, sets the cookie by which attempts from this browser are counted separately.
    """
    form = (getattr(answer, "context_data", None) or {}).get("form")
    wait_seconds = getattr(form, "wait_seconds", 0)
    if wait_seconds:
        answer.status_code = 429
        answer["Retry-After"] = str(wait_seconds)
    elif request.method == "POST" and form is None and request.user.is_authenticated:
        sign_in_attempts.remember_browser(answer, request.user.get_username())
    return answer
