"""What proves a request, what does not, and what runs see of it."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from executor.blocks.types.webhook import header_problem
from executor.errors import BadRequest, DeliveryRefused
from executor.kernel.store.topics.webhooks import Auth
from executor.service.triggers.requests import PASSED, Proof, Received, envelope, prove, sign
from server.http.errors import status_of

NOW_S = 1_800_000_000
NOW_MS = NOW_S * 1000
KEY = "whsec_a-key"
BODY = b'{"amount": 5}'


def request(headers: dict[str, str] | None = None, body: bytes = BODY, **fields: Any) -> Received:
    return Received("POST", headers or {}, fields.pop("query", []), body)


def signed(body: bytes = BODY, at_s: int = NOW_S, key: str = KEY, delivery: str | None = None) -> dict[str, str]:
    named = {} if delivery is None else {"x-weft-delivery": delivery}
    return {"x-weft-timestamp": str(at_s), "x-weft-signature": sign(key, body, at_s), **named}


def github(body: bytes = BODY, key: str = KEY, delivery: str | None = None) -> dict[str, str]:
    named = {} if delivery is None else {"x-github-delivery": delivery}
    return {"x-hub-signature-256": "sha256=" + hmac.new(key.encode(), body, hashlib.sha256).hexdigest(), **named}


def code_of(auth: Auth, headers: dict[str, str], body: bytes = BODY, key: str | None = KEY) -> str:
    with pytest.raises((DeliveryRefused, BadRequest)) as refused:
        prove(auth, key, request(headers, body), NOW_MS)
    assert status_of(refused.value) in (400, 401)
    return refused.value.code


def test_the_signature_is_what_openssl_makes_of_it() -> None:
    # printf '1800000000.{"amount": 5}' | openssl dgst -sha256 -hmac whsec_a-key
    wanted = hmac.new(b"whsec_a-key", b'1800000000.{"amount": 5}', hashlib.sha256).hexdigest()
    assert sign(KEY, BODY, NOW_S) == f"v1={wanted}"


def test_a_signed_request() -> None:
    proof = prove("hmac", KEY, request(signed()), NOW_MS)
    assert proof.delivery is None and proof.digest is not None and len(proof.digest) == 64
    named = prove("hmac", KEY, request(signed(delivery="d-1")), NOW_MS)
    assert named == Proof("d-1", proof.digest)
    upper = signed()
    upper["x-weft-signature"] = "v1=" + upper["x-weft-signature"][3:].upper()
    assert prove("hmac", KEY, request(upper), NOW_MS) == proof, "the same signature is the same delivery"


@pytest.mark.parametrize("at_s", [NOW_S - 300, NOW_S, NOW_S + 300])
def test_within_the_window(at_s: int) -> None:
    assert prove("hmac", KEY, request(signed(at_s=at_s)), NOW_MS).digest


@pytest.mark.parametrize("at_s", [0, NOW_S - 301, NOW_S + 301, 10**11])
def test_outside_the_window(at_s: int) -> None:
    assert code_of("hmac", signed(at_s=at_s)) == "signature_expired"


def test_what_a_signature_does_not_prove() -> None:
    good = signed()
    assert code_of("hmac", good, BODY + b" ") == "signature_invalid"
    assert code_of("hmac", {**good, "x-weft-timestamp": str(NOW_S + 1)}) == "signature_invalid"
    assert code_of("hmac", signed(key="another")) == "signature_invalid"
    assert code_of("hmac", good, key=None) == "signature_invalid"
    assert code_of("hmac", good, key="") == "signature_invalid"
    assert code_of("hmac", github()) == "signature_missing"
    digest = good["x-weft-signature"]
    for i in range(3, len(digest)):
        flipped = digest[:i] + ("0" if digest[i] != "0" else "1") + digest[i + 1 :]
        assert code_of("hmac", {**good, "x-weft-signature": flipped}) == "signature_invalid"
    for wrong in ("", "v1=", "v1", digest[3:], "v2=" + digest[3:], "v1=ü", "v1=" + "0" * 10_000, f"{digest}, {digest}"):
        assert code_of("hmac", {**good, "x-weft-signature": wrong}) in ("signature_invalid", "signature_missing")
    for wrong in ("", "now", "-1", "1e9", "１８００００００００", "1" * 13, f" {NOW_S}"):
        assert code_of("hmac", {**good, "x-weft-timestamp": wrong}) == "signature_missing"
    for name in good:
        assert code_of("hmac", {k: v for k, v in good.items() if k != name}) == "signature_missing"
    assert code_of("hmac", signed(delivery="two words")) == "delivery_invalid"
    assert code_of("hmac", signed(delivery="x" * 201)) == "delivery_invalid"


def test_as_github_signs() -> None:
    proof = prove("github", KEY, request(github(delivery="d-1")), NOW_MS)
    assert proof.delivery == "d-1" and proof.digest is not None
    assert proof.digest != prove("hmac", KEY, request(signed()), NOW_MS).digest
    # From GitHub's documentation of validating deliveries.
    known = {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    assert prove("github", "It's a Secret to Everybody", request(known, b"Hello, World!"), NOW_MS).digest
    assert code_of("github", github(), BODY + b" ") == "signature_invalid"
    assert code_of("github", github(key="another")) == "signature_invalid"
    assert code_of("github", {"x-hub-signature": "sha1=00"}) == "signature_missing"
    assert code_of("github", signed()) == "signature_missing"
    assert code_of("github", {}) == "signature_missing"


def test_a_bearer_token() -> None:
    assert prove("token", KEY, request({"authorization": f"Bearer {KEY}"}), NOW_MS) == Proof(None, None)
    assert (
        prove("token", KEY, request({"authorization": f"bearer  {KEY}", "x-weft-delivery": "7"}), NOW_MS).delivery
        == "7"
    )
    for wrong in ("", KEY, f"Basic {KEY}", f"Bearer {KEY}x", "Bearer", "Bearer ", "Bearer ü", f"Bearer {KEY[:-1]}"):
        assert code_of("token", {"authorization": wrong}) == "token_invalid"
    assert code_of("token", {}) == "token_invalid"
    assert code_of("token", {"authorization": "Bearer "}, key=None) == "token_invalid"
    assert code_of("token", {"authorization": "Bearer None"}, key=None) == "token_invalid"


def test_without_auth_nothing_is_asked_for() -> None:
    assert prove("none", None, request({"x-weft-delivery": "7"}), NOW_MS) == Proof("7", None)


def test_what_a_run_sees() -> None:
    headers = {
        "authorization": "Bearer hush",
        "content-type": "application/json; charset=utf-8",
        "cookie": "session=hush",
        "host": "weft.example",
        "user-agent": "tests",
        "x-custom": "mine",
        "x-forwarded-for": "192.0.2.1",
        "x-hub-signature-256": "hush",
        "x-weft-signature": "hush",
    }
    query = [("tag", "a"), ("tag", "b"), ("page", "1"), ("tag", "c")]
    seen = envelope(request(headers, query=query), ["X-Custom", "Cookie", "Authorization"], "d-1", NOW_MS)
    assert seen == {
        "body": {"amount": 5},
        "headers": {
            "content-type": "application/json; charset=utf-8",
            "user-agent": "tests",
            "x-custom": "mine",
        },
        "query": {"tag": ["a", "b", "c"], "page": "1"},
        "method": "POST",
        "delivery": "d-1",
        "received_at": NOW_MS,
    }
    assert not [name for name in PASSED if header_problem(name)]


@pytest.mark.parametrize(
    ("media", "body", "seen"),
    [
        ("application/json", b"", None),
        ("application/json", b"[1]", [1]),
        ("application/cloudevents+json", b'{"a":1}', {"a": 1}),
        ("text/plain", b'{"a":1}', '{"a":1}'),
        ("application/x-www-form-urlencoded", b"a=1", "a=1"),
        ("", "schön".encode(), "schön"),
    ],
)
def test_the_body(media: str, body: bytes, seen: Any) -> None:
    headers = {"content-type": media} if media else {}
    assert envelope(request(headers, body), [], "d", NOW_MS)["body"] == seen


def test_bodies_that_cannot_be_read() -> None:
    for media, body, code in (
        ("application/json", b"{", "malformed_json"),
        ("application/json", b'{"a": NaN}', "malformed_json"),
        ("image/png", b"\x89PNG", "body_not_text"),
    ):
        with pytest.raises(BadRequest) as refused:
            envelope(request({"content-type": media}, body), [], "d", NOW_MS)
        assert refused.value.code == code
    with pytest.raises(BadRequest) as refused:
        envelope(request(query=[("a", "b")] * 201), [], "d", NOW_MS)
    assert refused.value.code == "query_too_long"


@pytest.mark.parametrize(
    "name", ["Cookie", "authorization", "Proxy-Authorization", "x-api-key", "X-Gitlab-Token", "x-signature", "a b", ""]
)
def test_headers_that_runs_do_not_see(name: str) -> None:
    assert header_problem(name)
