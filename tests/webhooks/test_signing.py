"""Promises about signatures: the secret, and nothing else, verifies a request."""

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from webhooks import signing

ID = "0190b6f2-7d5e-7c3a-9d0e-1f2a3b4c5d6e"


@given(st.dictionaries(st.text(), st.text()), st.integers(1, 3))
def test_each_secret_verifies_the_payload(content: dict[str, str], count: int) -> None:
    payload = json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")
    payload = payload.decode("utf-8", "replace").encode()
    secrets = [signing.make_secret() for _ in range(count)]

    headers = signing.headers(ID, payload, secrets, datetime.now(UTC))

    assert headers["webhook-id"] == ID
    for secret in secrets:
        assert Webhook(secret).verify(payload, headers) == json.loads(payload)


def test_another_secret_does_not_verify() -> None:
    headers = signing.headers(ID, b"{}", [signing.make_secret()], datetime.now(UTC))

    with pytest.raises(WebhookVerificationError):
        Webhook(signing.make_secret()).verify(b"{}", headers)


def test_the_signature_is_the_one_of_the_specification() -> None:
    secret, at = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", datetime.fromtimestamp(1614265330, UTC)

    headers = signing.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', [secret], at)

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_made_secrets_are_legal_and_never_the_same() -> None:
    made = {signing.make_secret() for _ in range(100)}

    assert len(made) == 100
    for secret in made:
        signing.check_secret(secret)
        assert secret.startswith("whsec_")
        assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32


@pytest.mark.parametrize("size", [24, 32, 64])
@pytest.mark.parametrize("padding", ["", "=", "=="])
def test_a_secret_of_legal_size_is_accepted_with_or_without_padding(size: int, padding: str) -> None:
    text = base64.b64encode(b"k" * size).decode().rstrip("=")

    signing.check_secret(f"whsec_{text}{padding}")


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "whsec_" + base64.b64encode(b"k" * 23).decode(),
        "whsec_" + base64.b64encode(b"k" * 65).decode(),
        base64.b64encode(b"k" * 32).decode(),
        "secret" + base64.b64encode(b"k" * 32).decode(),
        "whsec_" + "!" * 44,
        "whsec_!" + base64.b64encode(b"k" * 32).decode(),
        "whsec_" + "é" * 44,
    ],
)
def test_an_illegal_secret_is_refused_without_repeating_it(secret: str) -> None:
    with pytest.raises(signing.SecretIllegal) as refused:
        signing.check_secret(secret)

    assert str(refused.value) == (
        "The secret is not whsec_ followed by the base64 of 24 to 64 bytes. Leave it out to have one made."
    )


def test_nothing_is_signed_with_an_illegal_secret() -> None:
    with pytest.raises(signing.SecretIllegal):
        signing.headers(ID, b"{}", ["whsec_" + base64.b64encode(b"weak").decode()], datetime.now(UTC))
