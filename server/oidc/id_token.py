"""Validation of ID tokens (OpenID Connect Core 1.0, 3.1.3.7)."""

from __future__ import annotations

import hmac
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, RSAKey

# Signatures with a secret of both sides (HS256), or without one (none), are refused.
ALGORITHMS = {
    "RS256": "RSA",
    "RS384": "RSA",
    "RS512": "RSA",
    "PS256": "RSA",
    "PS384": "RSA",
    "PS512": "RSA",
    "ES256": "EC",
    "ES384": "EC",
    "ES512": "EC",
    "EdDSA": "OKP",
}
RSA_BITS_MIN = 2048
CLOCK_S = 60  # so far may the clock of the provider be from ours
AGE_S = 24 * 3600
TOKEN_CHARS_MAX = 64 * 1024
SUBJECT_CHARS_MAX = 255
Claims = Mapping[str, Any]


class TokenRefused(Exception):
    """The token is not accepted. The text is the reason."""


class UnknownKey(TokenRefused):
    """No key of the provider fits the token: it may have a new one."""


def header_of(token: str) -> tuple[str, str | None]:
    """Algorithm and key id of a token that is signed with a key pair. Raises TokenRefused."""
    if len(token) > TOKEN_CHARS_MAX:
        raise TokenRefused("the token is too large")
    try:
        header = jws.extract_compact(token.encode("ascii")).headers()
    except (JoseError, ValueError):
        raise TokenRefused("it is not a token") from None
    alg, kid = header.get("alg"), header.get("kid")
    if not isinstance(alg, str) or alg not in ALGORITHMS:
        raise TokenRefused(f"the algorithm {str(alg)[:20]!r} is not accepted")
    if kid is not None and not isinstance(kid, str):
        raise TokenRefused("the key id is not a text")
    return alg, kid


def find_key(keys: Sequence[Mapping[str, Any]], alg: str, kid: str | None) -> Key:
    """Return the key that the token names, or the only one that fits. Raises UnknownKey, TokenRefused."""
    fitting = [
        key
        for key in keys
        if key.get("kty") == ALGORITHMS[alg]
        and key.get("use", "sig") == "sig"
        and key.get("alg", alg) == alg
        and (kid is None or key.get("kid") == kid)
    ]
    if len(fitting) != 1:
        raise UnknownKey("no key of the provider fits the token")
    public = {name: value for name, value in fitting[0].items() if name not in ("d", "p", "q", "dp", "dq", "qi", "oth")}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of weak keys, which are refused below
            key = JWKRegistry.import_key(public)
            bits = key.public_key.key_size if isinstance(key, RSAKey) else RSA_BITS_MIN
    except (JoseError, ValueError, TypeError, KeyError):
        raise TokenRefused("the key of the provider cannot be read") from None
    if bits < RSA_BITS_MIN:
        raise TokenRefused(f"the key of the provider has fewer than {RSA_BITS_MIN} bits")
    return key


def verified(token: str, key: Key, alg: str, *, issuer: str, client_id: str, nonce: str, now_s: float) -> Claims:
    """Return the claims of the token after all checks. Raises TokenRefused."""
    try:
        payload = jws.deserialize_compact(token.encode("ascii"), key, [alg]).payload
        claims = json.loads(payload)
    except (JoseError, ValueError, RecursionError):
        raise TokenRefused("the signature does not fit") from None
    if not isinstance(claims, dict):
        raise TokenRefused("it has no claims")
    _check_parties(claims, issuer, client_id)
    _check_times(claims, now_s)
    sent = claims.get("nonce")
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode("utf-8", "surrogatepass"), nonce.encode()):
        raise TokenRefused("it is for another sign-in (nonce)")
    return claims


def _check_parties(claims: Claims, issuer: str, client_id: str) -> None:
    if claims.get("iss") != issuer:
        raise TokenRefused("it is of another issuer (iss)")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if client_id not in audiences:
        raise TokenRefused("it is for another program (aud)")
    authorized = claims.get("azp")
    if authorized != client_id and (authorized is not None or len(audiences) > 1):
        raise TokenRefused("it is for another program (azp)")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_CHARS_MAX or not subject.isprintable():
        raise TokenRefused("it names no one (sub)")


def _check_times(claims: Claims, now_s: float) -> None:
    ends, issued = _time(claims, "exp"), _time(claims, "iat")
    begins = _time(claims, "nbf") if "nbf" in claims else issued
    if now_s >= ends + CLOCK_S:
        raise TokenRefused("it has expired (exp)")
    if issued < now_s - AGE_S or max(issued, begins) > now_s + CLOCK_S:
        raise TokenRefused("it is not of now (iat, nbf)")


def _time(claims: Claims, name: str) -> float:
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e12:
        raise TokenRefused(f"it has no time ({name})")
    return value
