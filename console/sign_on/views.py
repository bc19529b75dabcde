"""The way to the identity provider and back: the beginning of a sign-on, and its end."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from console.sign_on import provider
from console.users import sign_in_attempts
from console.users.away import RedirectAway
from store.errors import NoPermission

# Errors of a renewal that mean: the user has to sign in again (OpenID Connect Core 1.0, 3.1.2.6).
SIGN_IN_AGAIN = ("login_required", "interaction_required", "consent_required", "account_selection_required")


class Begin(OIDCAuthenticationRequestView):  # type: ignore[misc]  # the package ships no types
    """Sends a browser to the provider; with `renew` in the address, the provider must not ask the user for anything."""

    get_settings = staticmethod(provider.setting)

    def get(self, request: HttpRequest) -> HttpResponse:
        if wait_seconds := 0 if request.user.is_authenticated else sign_in_attempts.take(uses(request)):
            sentence = f"Too many sign-ons were begun from this address: try again in {wait_seconds} s."
            return refusal(request, sentence, 429, {"Retry-After": str(wait_seconds)})
        behind_tls(request)
        return RedirectAway(super().get(request).url)

    def get_extra_params(self, request: HttpRequest) -> dict[str, str]:
        return {"prompt": "none"} if "renew" in request.GET else {}


class Return(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # the package ships no types
    """Takes a browser that returns from the provider: signs the user in, or says why not."""

    get_settings = staticmethod(provider.setting)

    def get(self, request: HttpRequest) -> HttpResponse:
        begun = request.session.get("oidc_states", {})
        if request.GET.get("state") not in begun:
            return refusal(request, "This sign-on was begun in another browser, or is over: begin again.")
        behind_tls(request)
        try:
            answer: HttpResponse = super().get(request)
        except NoPermission as problem:
            # A user whom the provider does not confirm is signed out, also if the user was signed in before and this is
            # a renewal.
            auth.logout(request)
            return refusal(request, problem.detail)
        return answer

    def login_failure(self) -> HttpResponse:
        error = self.request.GET.get("error", "")
        if error in SIGN_IN_AGAIN:
            return HttpResponseRedirect(reverse("admin:login"))
        return refusal(self.request, f"The identity provider ended the sign-on ({error[:60] or 'no code'}).")

    def login_success(self) -> HttpResponse:
        answer: HttpResponse = super().login_success()
        session = self.request.session
        # The expiry is an absolute time: a number of seconds would start again at each change of the session.
        session.set_expiry(timezone.now() + timedelta(seconds=2 * settings.SIGN_ON_RENEW_SECONDS))
        session.clear_expired()
        sign_in_attempts.give_back(uses(self.request))
        return answer


def uses(request: HttpRequest) -> sign_in_attempts.Uses:
    """The slot in which sign-ons of the sender's address are counted, because each one stores a session."""
    return sign_in_attempts.to_sign_on(request)


def behind_tls(request: Any) -> None:
    """Makes the address of the way back `https` where a proxy ends TLS."""
    if settings.SESSION_COOKIE_SECURE:
        request.scope["scheme"] = "https"


def refusal(
    request: HttpRequest, sentence: str, status: int = 403, headers: dict[str, str] | None = None
) -> HttpResponse:
    """A page with the reason why a sign-on was refused."""
    answer = render(request, "console/sign_on_refused.html", {"sentence": sentence}, status=status)
    for name, value in (headers or {}).items():
        answer[name] = value
    return answer


ENTRANCES = (
    ("sign-on/", Begin.as_view(), "sign_on"),
    ("sign-on/return/", Return.as_view(), "sign_on_return"),
)
SIGN_INS = ((f"Sign in with {urlsplit(settings.SIGN_ON_ISSUER).hostname}", "sign_on"),)
