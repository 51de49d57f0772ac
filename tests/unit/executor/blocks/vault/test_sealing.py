from __future__ import annotations

import pytest
from msgspec.structs import replace

from executor.blocks.vault.sealing import Keys
from executor.errors import BlockError, Conflict
from executor.kernel.store.topics.secrets import SecretRow

VALUE = "s3cret value ü"


def row(keys: Keys) -> SecretRow:
    return SecretRow("API_KEY", 2, keys.seal("API_KEY", 2, VALUE), keys.id, (), "", 0)


def test_what_is_sealed_is_opened_with_the_same_key_alone() -> None:
    keys, other = Keys(b"1" * 32), Keys(b"2" * 32)
    sealed = row(keys)
    assert keys.open(sealed) == VALUE
    assert VALUE.encode() not in sealed.sealed and keys.id != other.id
    with pytest.raises(BlockError, match="cannot be opened"):
        other.open(sealed)
    with pytest.raises(BlockError, match="cannot be opened"):
        other.open(replace(sealed, key_id=other.id))


def test_a_sealed_value_belongs_to_its_name_and_version() -> None:
    keys = Keys(b"1" * 32)
    for moved in (replace(row(keys), name="OTHER"), replace(row(keys), version=3)):
        with pytest.raises(BlockError, match="cannot be opened"):
            keys.open(moved)


def test_a_changed_byte_is_found() -> None:
    keys = Keys(b"1" * 32)
    sealed = row(keys)
    for at in range(len(sealed.sealed)):
        data = bytearray(sealed.sealed)
        data[at] ^= 1
        with pytest.raises(BlockError):
            keys.open(replace(sealed, sealed=bytes(data)))
    with pytest.raises(BlockError):
        keys.open(replace(sealed, sealed=b""))


def test_an_older_key_only_opens() -> None:
    old, both = Keys(b"1" * 32), Keys(b"2" * 32, b"1" * 32)
    assert both.open(row(old)) == VALUE
    assert row(both).key_id == Keys(b"2" * 32).id == both.id


def test_without_the_library_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(b"1" * 32)
    sealed = row(keys)
    monkeypatch.setattr("executor.blocks.vault.sealing.find_spec", lambda name: None)
    with pytest.raises(Conflict) as refused:
        row(keys)
    with pytest.raises(BlockError) as failed:
        keys.open(sealed)
    assert (refused.value.code, failed.value.code) == ("secrets_missing", "secrets_missing")
    assert "cryptography" in refused.value.hint and refused.value.hint == failed.value.hint
