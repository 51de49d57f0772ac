"""Values of the right type that cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.reach import SettingsError
from server.settings import load_settings


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("WEFT_HOST", "http://127.0.0.1", "must be an address"),
        ("WEFT_HOST", "127.0.0.1:8765", "without a port"),
        ("WEFT_ALLOWED_HOSTS", "weft.example,https://weft.example", "'https://weft.example'"),
        ("WEFT_BASE_URL", "https://", "with a host"),
        ("WEFT_BASE_URL", "https://weft.example?a=1", "without user, query"),
        ("WEFT_BASE_URL", "https://ada:b@weft.example", "without user, query"),
        ("WEFT_BASE_URL", "https://weft.example:many", "must be a URL"),
        ("WEFT_NOTIFY_WEBHOOK", "https://", "with a host"),
        ("WEFT_MAIL_FROM", "weft", "must be a mail address"),
        ("WEFT_MAIL_HOST", "smtp.example:25", "without a port"),
        ("WEFT_MAIL_PORT", "0", "between 1 and 65535"),
        ("WEFT_MAIL_PASSWORD", "geheim", "needs WEFT_MAIL_USER"),
        ("WEFT_OLD_SECRET_KEY", "short", "at least 16"),
        ("WEFT_BUS_DB", "postgresql://db/weft", "needs a PostgreSQL database"),
        ("WEFT_SECRETS_COMMAND", "vault 'read", "cannot be read"),
        ("WEFT_FUNCTIONS", "shop orders", "package.module:function"),
        ("WEFT_KUBERNETES", "Batch_Jobs", "names of namespaces"),
        ("WEFT_ENV_", "a", "must have a name"),
        ("WEFT_ENV_a-b", "a", "must have a name"),
        ("WEFT_MODEL_", "http://127.0.0.1:1", "must have a name|WEFT_MODEL_"),
    ],
)
def test_it_is_refused_with_its_name(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        load_settings({name: value})
    assert name in str(refused.value)


def test_paths_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_text("")
    for name, value in (
        ("WEFT_DB", str(tmp_path)),
        ("WEFT_DB", f"{file}/weft.db"),
        ("WEFT_DATA", str(file)),
        ("WEFT_SQLITE_FOLDERS", str(file)),
        ("WEFT_FILE_FOLDERS", str(file)),
    ):
        with pytest.raises(SettingsError, match=r"folder"):
            load_settings({name: value})


def test_what_is_meant_passes(tmp_path: Path) -> None:
    load_settings(
        {
            "WEFT_HOST": "::1",
            "WEFT_ALLOWED_HOSTS": "weft.example,weft:8765,[::1]:80",
            "WEFT_BASE_URL": "https://weft.example/flows/",
            "WEFT_MAIL_FROM": "weft <weft@example.org>",
            "WEFT_MAIL_HOST": "smtp.example.org",
            "WEFT_DB": str(tmp_path / "new" / "weft.db"),
            "WEFT_SQLITE_FOLDERS": str(tmp_path / "later"),
            "WEFT_ENV_lower_1": "a",
        }
    )
