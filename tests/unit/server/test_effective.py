"""`weft config`: where each setting comes from, what is wrong with it, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server import cli
from server.effective import SET, Setting, effective
from server.variables import KNOWN

MISSPELT = "WEFT_" + "PROT"  # not in one piece: each name in the sources must be known
PORT = "WEFT_PORT must be a whole number between 0 and 65535, not '70000'"
SECRET = "hunter2hunter2hunter2hunter2"


def config(*arguments: str, **environ: str) -> Result:
    return CliRunner(env=environ).invoke(cli.weft, ["config", *arguments], prog_name="weft", standalone_mode=False)


def found(environ: dict[str, str], **options: str) -> dict[str, Setting]:
    return {one.name: one for one in effective(environ, options)}


def test_each_setting_has_its_source(tmp_path: Path) -> None:
    environ = {"WEFT_DATA": str(tmp_path), "WEFT_PORT": "9000", "WEFT_HOST": "127.0.0.1", "PATH": "/bin"}
    one = found(environ, WEFT_PORT="9001")
    assert one["WEFT_PORT"] == Setting("WEFT_PORT", "9001", "option")
    assert one["WEFT_HOST"] == Setting("WEFT_HOST", "127.0.0.1", "variable")
    assert one["WEFT_LEASE_MS"] == Setting("WEFT_LEASE_MS", "15000", "default")
    assert one["WEFT_DB"] == Setting("WEFT_DB", f"{tmp_path}/weft.db", "variable")
    assert one["WEFT_TOKEN"].source == one["WEFT_SECRET_KEY"].source == "file"
    assert "(made at the first start)" in (one["WEFT_TOKEN"].value or "")
    assert one["WEFT_MAIL_PORT"].value == "587" and one["WEFT_OIDC_SCOPES"].value == "openid,email,profile"
    assert set(KNOWN) - {"WEFT_URL", "WEFT_WEB"} == one.keys()
    (tmp_path / "weft.token").write_text("t" * 32)
    assert found(environ)["WEFT_TOKEN"].value == str(tmp_path / "weft.token")


def test_every_problem_is_marked_at_its_variable() -> None:
    wrong = {"WEFT_PORT": "70000", "WEFT_LOG": "loud", MISSPELT: SECRET, "WEFT_NOTIFY_EMAIL": "ada"}
    one = found({**wrong, "WEFT_LEASE_MS": "2000"})
    assert {name for name, setting in one.items() if setting.problem} == wrong.keys()
    assert "did you mean WEFT_PORT" in (one[MISSPELT].problem or "")
    assert one[MISSPELT].value == SET, "a misspelt name may be that of a secret"


def test_a_setting_that_is_missing_is_a_problem() -> None:
    one = found({"WEFT_DB": f"postgresql://weft:{SECRET}@db.internal:5433/weft?password={SECRET}"})
    assert one["WEFT_DB"].value == "postgresql://db.internal:5433/weft"
    assert "must be set" in (one["WEFT_SECRET_KEY"].problem or "")


@pytest.mark.parametrize("how", [(), ("--all",), ("--json",)])
def test_no_secret_is_shown(how: tuple[str, ...]) -> None:
    ran = config(
        *how,
        WEFT_TOKEN=SECRET,
        WEFT_SECRET_KEY=SECRET,
        WEFT_OLD_SECRET_KEY=SECRET,
        WEFT_NOTIFY_WEBHOOK=f"https://hooks.example/{SECRET}",
        WEFT_MAIL_USER="weft",
        WEFT_MAIL_PASSWORD=SECRET,
        WEFT_ENV_KEY=SECRET,
        WEFT_ENV_REGION="eu",
        WEFT_NOT_SECRET="REGION",
        WEFT_SECRET_OTHER=SECRET,
        WEFT_SECRETS_COMMAND=f"vault --token {SECRET}",
        WEFT_MODEL_LOCAL="http://127.0.0.1:1/v1",
        WEFT_OIDC_ISSUER="https://id.example",
        WEFT_OIDC_CLIENT_ID="weft",
        WEFT_OIDC_CLIENT_SECRET=SECRET,
    )
    assert ran.exit_code == 0 and ran.return_value == 0, ran.output
    assert SECRET not in ran.output and "http://127.0.0.1:1/v1" in ran.output and "eu" in ran.output


def test_the_command_says_whether_a_server_would_start() -> None:
    assert config(WEFT_PORT="1").return_value == 0
    refused = config("--json", "--port", "70000", WEFT_PORT="1")
    assert refused.return_value == 4
    assert [one for one in json.loads(refused.stdout) if one["problem"]] == [
        {"name": "WEFT_PORT", "value": "70000", "source": "option", "problem": PORT}
    ]
