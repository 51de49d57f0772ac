"""A sealed message holds no secret, and opens to what was sealed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.errors import BlockError
from executor.kernel.values.redact import Redactor
from executor.kernel.values.seal import seal, unseal, unsealed_names

ENV = {"TOKEN": 'a "quoted"\\ secret', "LONGER": 'a "quoted"\\ secret and more', "REGION": "northern", "PIN": "123"}
SECRETS = ("TOKEN", "LONGER", "PIN")


def sealed(value: Any, env: dict[str, str] = ENV) -> bytes:
    return seal(orjson.dumps(value), env, SECRETS, Redactor(env[name] for name in SECRETS if name in env))


def test_secrets_are_named_and_put_back() -> None:
    value = {"url": f"https://x/{ENV['LONGER']}/{ENV['TOKEN']}", ENV["TOKEN"]: [ENV["REGION"], 5, None]}
    stored = sealed(value)
    assert b"quoted" not in stored and b"northern" in stored
    assert unseal(stored, ENV) == value
    assert unsealed_names(stored) == {"url": "https://x/${LONGER}/${TOKEN}", "${TOKEN}": ["northern", 5, None]}


def test_a_name_in_the_text_is_no_secret() -> None:
    value = {"a": "${TOKEN}", "b": ["TOKEN"], "c": 'x","TOKEN","', "d": '["TOKEN"]'}
    assert unseal(sealed(value), ENV) == value


def test_it_goes_out_with_the_secret_of_today() -> None:
    assert unseal(sealed({"key": ENV["TOKEN"]}), ENV | {"TOKEN": "another one"}) == {"key": "another one"}
    with pytest.raises(BlockError, match="TOKEN") as gone:
        unseal(sealed({"key": ENV["TOKEN"]}), {})
    assert not gone.value.retryable


def test_what_cannot_be_put_back_is_removed() -> None:
    import base64

    hidden = base64.b64encode(ENV["TOKEN"].encode()).decode()
    stored = sealed({"key": f"Basic {hidden}"})
    assert hidden.encode() not in stored
    assert unseal(stored, ENV) == {"key": "Basic [redacted]"}


def test_without_secrets_it_is_as_it_was() -> None:
    assert unseal(seal(b'{"a":1}', {}, (), Redactor(())), {}) == {"a": 1}


TEXTS = st.text(st.sampled_from([*'a"\\ quotedscr[]{},$TOKEN']), max_size=20)
VALUES = st.recursive(
    TEXTS | st.sampled_from([ENV["TOKEN"], ENV["LONGER"], "${TOKEN}"]) | st.integers(0, 999),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@settings(deadline=None)
@given(VALUES)
def test_sealing_loses_nothing_and_hides_all(value: Any) -> None:
    stored = sealed(value)
    assert unseal(stored, ENV) == value
    written = orjson.dumps(ENV["TOKEN"]).decode()[1:-1]
    assert all(written not in part for part in orjson.loads(stored))
