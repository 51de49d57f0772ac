from __future__ import annotations

import logging
import stat
import sys
from pathlib import Path

import pytest

from executor.blocks.vault.command import External
from executor.kernel.worker.worker import RUNS_MAX
from server.keys import read_secret
from server.logs import LogFormatter
from server.process import serve
from server.reach import SettingsError
from server.settings import Settings, load_settings
from server.variables import CONCURRENCY_MAX

OIDC = {"WEFT_OIDC_ISSUER": "https://i.example", "WEFT_OIDC_CLIENT_ID": "weft"}


def test_defaults_listen_on_loopback_only() -> None:
    settings = load_settings({})
    assert (settings.host, settings.port, settings.db_path) == ("127.0.0.1", 8765, "./.weft/weft.db")
    assert settings.base_url == "http://127.0.0.1:8765"
    assert settings.token is None
    assert settings.retention_ms is None  # runs are kept for ever


def test_everything_comes_from_the_environment() -> None:
    settings = load_settings({
        "WEFT_PORT": "9000",
        "WEFT_TOKEN": "a-token-of-20-letters",
        "WEFT_HOST": "0.0.0.0",
        "WEFT_ALLOWED_HOSTS": "weft.example, other:81,",
        "WEFT_ALLOW_PRIVATE": "10.0.0.0/8,localhost:5000",
        "WEFT_BASE_URL": "https://weft.example/",
        "WEFT_MAIL_TRANSPORT": "smtp",
        "WEFT_MAIL_PORT": "25",
        "WEFT_MAIL_STARTTLS": "true",
        "WEFT_ENV_API_KEY": "k",
        "WEFT_ENV_REGION": "north",
        "WEFT_NOT_SECRET": "REGION",
        "WEFT_LEASE_MS": "1000",
        "WEFT_RETENTION_DAYS": "0.5",
        "WEFT_NOTIFY_EMAIL": "ada@example.org, ops@example.org",
        "WEFT_NOTIFY_WEBHOOK": "https://hooks.example/T0/secret-part",
        "PATH": "/bin",
    })  # fmt: skip
    assert settings.allowed_hosts == ("weft.example", "other:81")
    assert settings.allow_private == ("10.0.0.0/8", "localhost:5000")
    assert settings.base_url == "https://weft.example"
    assert (settings.mail.transport, settings.mail.port, settings.mail.start_tls) == ("smtp", 25, True)
    assert settings.workflow_env == {"WEFT_BASE_URL": "https://weft.example", "API_KEY": "k", "REGION": "north"}
    assert settings.secret_names == {"API_KEY"}
    assert settings.lease_ms == 1000
    assert settings.retention_ms == 43_200_000
    assert settings.notify_email == ("ada@example.org", "ops@example.org")
    assert "https://hooks.example/T0/secret-part" in settings.unloggable and "T0" not in repr(settings)


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"WEFT_PORT": "http"}, "WEFT_PORT"),
        ({"WEFT_PORT": "70000"}, "WEFT_PORT"),
        ({"WEFT_LOG": "loud"}, "WEFT_LOG"),
        ({"WEFT_LEASE_MS": "999"}, "WEFT_LEASE_MS"),
        ({"WEFT_LEASE_MS": "3600001"}, "WEFT_LEASE_MS"),
        ({"WEFT_CONCURRENCY": "0"}, "WEFT_CONCURRENCY must be a whole number of runs between 1 and 1000"),
        ({"WEFT_CONCURRENCY": "1001"}, "WEFT_CONCURRENCY must be a whole number of runs between 1 and 1000"),
        (
            {"WEFT_CONCURRENCY": "many"},
            "a whole number of runs between 1 and 1000, not 'many'",
        ),
        (
            {"WEFT_LEASE_MS": "soon"},
            "WEFT_LEASE_MS must be a whole number of milliseconds between .*, not 'soon'",
        ),
        ({"WEFT_LOG": "noisy"}, "WEFT_LOG must be debug, info, warning or error, not 'noisy'"),
        ({"WEFT_MAIL_STARTTLS": "maybe"}, "WEFT_MAIL_STARTTLS must be true or false, not 'maybe'"),
        ({"WEFT_ALLOW_PRIVATE": "10.0.0.0/8,net/99"}, "WEFT_ALLOW_PRIVATE: 'net/99' .* use networks"),
        ({"WEFT_ALLOW_PRIVATE": "db:many"}, "WEFT_ALLOW_PRIVATE: 'db:many'"),
        ({"WEFT_RETENTION_DAYS": "0"}, "WEFT_RETENTION_DAYS"),
        ({"WEFT_RETENTION_DAYS": "36501"}, "WEFT_RETENTION_DAYS"),
        ({"WEFT_RETENTION_DAYS": "a month"}, "WEFT_RETENTION_DAYS"),
        ({"WEFT_MAIL_PORT": "x"}, "WEFT_MAIL_PORT"),
        ({"WEFT_MAIL_TRANSPORT": "pigeon"}, "WEFT_MAIL_TRANSPORT"),
        ({"WEFT_SECRET_KEY": "short"}, "WEFT_SECRET_KEY"),
        ({"WEFT_BASE_URL": "weft.example"}, "WEFT_BASE_URL"),
        ({"WEFT_OIDC_CLIENT_ID": "weft"}, "WEFT_OIDC_CLIENT_ID needs WEFT_OIDC_ISSUER"),
        ({**OIDC, "WEFT_OIDC_CLIENT_ID": ""}, "WEFT_OIDC_ISSUER needs WEFT_OIDC_CLIENT_ID"),
        ({**OIDC, "WEFT_OIDC_ISSUER": "http://i.example"}, "WEFT_OIDC_ISSUER must start with https://"),
        ({**OIDC, "WEFT_OIDC_ISSUER": "https://i.example?x=y"}, "WEFT_OIDC_ISSUER must be a URL without a query"),
        ({**OIDC, "WEFT_OIDC_ISSUER": "https://["}, "WEFT_OIDC_ISSUER must be a URL"),
        ({**OIDC, "WEFT_OIDC_ROLE": "boss"}, "WEFT_OIDC_ROLE must be one of viewer, approver, editor, admin"),
        ({**OIDC, "WEFT_OIDC_GROUPS": "ops"}, "WEFT_OIDC_GROUPS must be group=role"),
        ({**OIDC, "WEFT_OIDC_GROUPS": "ops=boss"}, "WEFT_OIDC_GROUPS must be group=role"),
        ({**OIDC, "WEFT_OIDC_DOMAINS": "@i.example"}, "WEFT_OIDC_DOMAINS must be domains"),
        ({**OIDC, "WEFT_OIDC_SCOPES": "email"}, "WEFT_OIDC_SCOPES must have openid"),
        ({**OIDC, "WEFT_OIDC_PRIVATE": "maybe"}, "WEFT_OIDC_PRIVATE must be true or false, not 'maybe'"),
        ({**OIDC, "WEFT_TOKEN": "off"}, "WEFT_OIDC_ISSUER has no effect with WEFT_TOKEN=off"),
        ({"WEFT_BEHIND_PROXY": "127.0.0.1"}, "WEFT_BEHIND_PROXY needs WEFT_BASE_URL"),
        ({"WEFT_BEHIND_PROXY": "proxy", "WEFT_BASE_URL": "https://w.example"}, "'proxy' is not an address"),
        ({"WEFT_BEHIND_PROXY": "0.0.0.0/0", "WEFT_BASE_URL": "https://w.example"}, "too many addresses"),
        ({"WEFT_BEHIND_PROXY": "::/0", "WEFT_BASE_URL": "https://w.example"}, "too many addresses"),
        ({"WEFT_NOTIFY_EMAIL": "ada@example.org ops@example.org"}, "WEFT_NOTIFY_EMAIL"),
        ({"WEFT_NOTIFY_EMAIL": "ada"}, "WEFT_NOTIFY_EMAIL"),
        ({"WEFT_PRICE_OPENAI": "cheap"}, "WEFT_PRICE_OPENAI"),
        ({"WEFT_PRICE_LOCAL": "1/2"}, "WEFT_MODEL_LOCAL"),
        ({"WEFT_NOTIFY_WEBHOOK": "hooks.example"}, "WEFT_NOTIFY_WEBHOOK"),
        ({"WEFT_HOST": "0.0.0.0", "WEFT_TOKEN": "off"}, "WEFT_TOKEN"),
        ({"WEFT_HOST": "192.168.1.5", "WEFT_TOKEN": "off"}, "WEFT_TOKEN"),
        ({"WEFT_HOST": "::", "WEFT_TOKEN": "off"}, "WEFT_TOKEN"),
        ({"WEFT_HOST": "weft.example", "WEFT_TOKEN": "off"}, "WEFT_TOKEN"),
    ],
)
def test_a_wrong_setting_is_named(environ: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        load_settings(environ)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert load_settings({"WEFT_HOST": host}).host == host


def test_the_token_can_be_switched_off_on_loopback_only() -> None:
    assert load_settings({"WEFT_TOKEN": "off"}).token is None
    with pytest.raises(SettingsError, match="WEFT_TOKEN"):
        load_settings({"WEFT_TOKEN": "off", "WEFT_HOST": "0.0.0.0"})


def test_serving_openly_without_a_token_ends_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert serve(Settings(host="0.0.0.0", port=0, db_path=str(tmp_path / "weft.db"))) == 2
    assert "WEFT_TOKEN" in capsys.readouterr().err


def test_secrets_do_not_show() -> None:
    shown = repr(Settings(token="hunter2", secret_key="0123456789abcdef", env={"KEY": "value1"}))
    assert "hunter2" not in shown and "0123456789abcdef" not in shown and "value1" not in shown


def test_the_key_file_is_made_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    settings = Settings(db_path=str(tmp_path / "deep" / "weft.db"))
    first = read_secret(settings)
    path = tmp_path / "deep" / "weft.key"
    assert len(first) == 32 and read_secret(settings) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["weft.key"]


def test_a_damaged_key_file_is_refused_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "weft.key").write_text("00ff")
    with pytest.raises(SettingsError, match=r"weft\.key"):
        read_secret(Settings(db_path=str(tmp_path / "weft.db")))
    assert (tmp_path / "weft.key").read_text() == "00ff"


def test_a_configured_secret_needs_no_file(tmp_path: Path) -> None:
    settings = Settings(db_path=str(tmp_path / "weft.db"), secret_key="a long enough secret")
    assert len(read_secret(settings)) == 32
    assert list(tmp_path.iterdir()) == []


def test_the_text_of_a_key_file_may_be_set_instead(tmp_path: Path) -> None:
    """What was sealed beside a file stays valid when its runs move to another database."""
    of_file = read_secret(Settings(db_path=str(tmp_path / "weft.db")))
    text = (tmp_path / "weft.key").read_text().strip()
    assert read_secret(Settings(secret_key=f"hex:{text}")) == of_file
    assert read_secret(Settings(secret_key=f"hex:{text}0")) != of_file


def test_secrets_are_read_and_always_secret() -> None:
    settings = load_settings({
        "WEFT_SECRET_API_KEY": "a-secret-value",
        "WEFT_SECRET_KEY": "seals resume links",
        "WEFT_ENV_REGION": "north",
        "WEFT_NOT_SECRET": "REGION,API_KEY",
        "WEFT_TOKEN": "the-token",
    })  # fmt: skip
    assert set(settings.workflow_env) == {"WEFT_BASE_URL", "REGION"}
    assert settings.kept_secrets == {"API_KEY": External("a-secret-value")}
    assert settings.secret_names == set()
    assert settings.unloggable == ["a-secret-value", "the-token", "seals resume links"]
    assert "a-secret-value" not in repr(settings)


def test_a_name_is_either_secret_or_not() -> None:
    with pytest.raises(SettingsError, match="WEFT_SECRET_A"):
        load_settings({"WEFT_ENV_A": "1", "WEFT_SECRET_A": "2"})


def test_no_line_of_the_log_holds_a_secret() -> None:
    formatter = LogFormatter(["a-secret-value"])
    try:
        raise ValueError("given a-secret-value")
    except ValueError:
        record = logging.LogRecord("weft", logging.ERROR, "f.py", 1, "with %s", ("a-secret-value",), sys.exc_info())
    shown = formatter.format(record)
    assert "with [redacted]" in shown and "Traceback" in shown and "a-secret-value" not in shown


def test_without_the_setting_a_worker_does_what_it_can() -> None:
    assert load_settings({}).concurrency == CONCURRENCY_MAX == RUNS_MAX
    assert load_settings({"WEFT_CONCURRENCY": "4"}).concurrency == 4


def test_a_provider_that_signs_people_in() -> None:
    more = {
        "WEFT_OIDC_CLIENT_SECRET": "the-secret-of-the-client",
        "WEFT_OIDC_GROUPS": "/staff=viewer, a=b=admin",
        "WEFT_OIDC_DOMAINS": "example.com, example.org",
        "WEFT_OIDC_PRIVATE": "true",
    }
    settings = load_settings({**OIDC, **more})
    assert settings.oidc is not None and settings.oidc.label == "i.example" and settings.oidc.place == "i.example:443"
    assert settings.oidc.roles == {"/staff": "viewer", "a=b": "admin"} and settings.oidc.private
    assert settings.oidc.scopes == ("openid", "email", "profile")
    assert "the-secret-of-the-client" in settings.unloggable and "the-secret" not in repr(settings)
