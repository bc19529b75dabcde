"""Settings of the sign-on to the console at an identity provider, by OpenID Connect."""

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from mqbroker.environment import env, extras

__all__ = [
    "AUTHENTICATION_BACKENDS",
    "SIGN_ON_CLIENT_ID",
    "SIGN_ON_CLIENT_SECRET",
    "SIGN_ON_DOORS",
    "SIGN_ON_ISSUER",
    "SIGN_ON_LOCAL_USERS",
    "SIGN_ON_MIDDLEWARE",
    "SIGN_ON_RENEW_SECONDS",
    "SIGN_ON_ROLE_CLAIM",
    "SIGN_ON_SCOPES",
]


DISCOVERY = "/.well-known/openid-configuration"


def _issuer(raw: str) -> str:
    parts = urlsplit(raw)
    is_local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if raw and not (parts.hostname and parts.scheme in (("https", "http") if is_local else ("https",))):
        raise ValueError("not an https address")
    if any(character.isspace() for character in raw):
        raise ValueError("a blank or line break")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError("an issuer has no user, query or fragment")
    if parts.path.rstrip("/").endswith(DISCOVERY):
        raise ValueError(f"the address of the discovery document: leave out {DISCOVERY}")
    # Raises ValueError unless the port is a valid port number.
    _ = parts.port
    return raw


def _scopes(raw: str) -> str:
    if "openid" not in raw.split():
        raise ValueError("without openid, the provider issues no ID token")
    return raw


def _claim(raw: str) -> str:
    if not raw.strip() or raw != raw.strip():
        raise ValueError("empty, or with blanks around it")
    return raw


SIGN_ON_ISSUER = env.read(
    "SIGN_ON_ISSUER",
    "",
    "Issuer of the identity provider for the console, by OpenID Connect; its discovery document names the endpoints. "
    "Empty: only local users sign in.",
    _issuer,
    "an address such as https://login.example.org/realms/staff; http on a loopback address only",
)
SIGN_ON_CLIENT_ID = env.text("SIGN_ON_CLIENT_ID", "", "Client id of the console at the identity provider.")
SIGN_ON_CLIENT_SECRET = env.text("SIGN_ON_CLIENT_SECRET", "", "Client secret of the console at the identity provider.")
SIGN_ON_SCOPES = env.read(
    "SIGN_ON_SCOPES",
    "openid email profile",
    "Scopes that the console asks the provider for.",
    _scopes,
    "scopes between blanks, with openid among them",
)
SIGN_ON_ROLE_CLAIM = env.read(
    "SIGN_ON_ROLE_CLAIM",
    "roles",
    "Claim of the ID token that contains the user's roles: viewer, operator or admin, and bodies.",
    _claim,
    "the name of a claim, such as roles",
)
SIGN_ON_RENEW_SECONDS = env.whole(
    "SIGN_ON_RENEW_SECONDS",
    900,
    "Time after which the console asks the provider again whether a user's session still lasts; after twice this "
    "time without an answer the console's session ends. A shorter time ends sessions sooner, and interrupts pages "
    "more often.",
    1,
)
SIGN_ON_LOCAL_USERS = env.switch(
    "SIGN_ON_LOCAL_USERS", True, "Let local users sign in with a password, besides the identity provider's users."
)
for _name, _value in (("SIGN_ON_CLIENT_ID", SIGN_ON_CLIENT_ID), ("SIGN_ON_CLIENT_SECRET", SIGN_ON_CLIENT_SECRET)):
    # The value may be a secret, so the error does not show the value.
    if _value != _value.strip():
        raise ImproperlyConfigured(
            f"{env.PREFIX}{_name} begins or ends with a blank or line break: give the text without it."
        )
if SIGN_ON_ISSUER:
    if absent := extras.missing("oidc"):
        raise ImproperlyConfigured(f"{env.PREFIX}SIGN_ON_ISSUER needs an extra. {absent}")
    if not (SIGN_ON_CLIENT_ID and SIGN_ON_CLIENT_SECRET):
        raise ImproperlyConfigured(
            f"{env.PREFIX}SIGN_ON_ISSUER is given without a client: "
            f"give {env.PREFIX}SIGN_ON_CLIENT_ID and {env.PREFIX}SIGN_ON_CLIENT_SECRET."
        )
elif SIGN_ON_CLIENT_ID or SIGN_ON_CLIENT_SECRET:
    raise ImproperlyConfigured(
        f"{env.PREFIX}SIGN_ON_CLIENT_ID or {env.PREFIX}SIGN_ON_CLIENT_SECRET is given without an identity provider: "
        f"give {env.PREFIX}SIGN_ON_ISSUER, or leave out both."
    )
elif not SIGN_ON_LOCAL_USERS:
    raise ImproperlyConfigured(
        f"{env.PREFIX}SIGN_ON_LOCAL_USERS=false leaves no user who may sign in: give {env.PREFIX}SIGN_ON_ISSUER."
    )

# The door is installed, and its modules are imported, only with an issuer.
SIGN_ON_DOORS = ["console.sign_on"] if SIGN_ON_ISSUER else []
SIGN_ON_MIDDLEWARE = ["console.sign_on.renewal.Renewal"] if SIGN_ON_ISSUER else []
# A session ends at once when the backend that made it is not listed any more.
AUTHENTICATION_BACKENDS = [
    *(["console.sign_on.backend.SignOn"] if SIGN_ON_ISSUER else []),
    *(["django.contrib.auth.backends.ModelBackend"] if SIGN_ON_LOCAL_USERS else []),
]
