"""Mail over TLS, from the start and by STARTTLS, to servers whose certificates are good and bad."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, cast

import pytest
import trustme

from executor.blocks.services import MailSettings, Services
from executor.blocks.types.email import block
from executor.errors import BlockError
from executor.kernel.handler.base import Done
from tests.support.endpoints import MailServer, smtp
from tests.unit.executor.blocks.types.flow import context

PASSWORD = "a-pa55word"
STARTTLS = {"EHLO": "250-test\r\n250-STARTTLS\r\n250 AUTH PLAIN"}
WITHOUT = {"EHLO": "250-test\r\n250 AUTH PLAIN"}
HOWS = pytest.mark.parametrize("from_the_start", [True, False], ids=["implicit", "STARTTLS"])


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an operator does whose mail server has a certificate of the company."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))


def tls(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(made)
    return made


async def send(server: MailServer, monkeypatch: pytest.MonkeyPatch, *, from_the_start: bool = False) -> None:
    """`from_the_start`: the port of the server is in place of 465."""
    if from_the_start:
        monkeypatch.setattr("executor.blocks.types.mail._IMPLICIT_TLS_PORT", server.port)
    mail = MailSettings("smtp", "weft@example.org", "127.0.0.1", server.port, "ada", PASSWORD, start_tls=True)
    services = Services(sandbox=cast(Any, None), http=cast(Any, None), mail=mail)
    params = {"to": "bob@example.org", "subject": "Hi", "body": "Text"}
    done = await block.run(context(params, services=services, idempotency_key="run:mail", now_ms=1_700_000_000_000))
    assert isinstance(done, Done)


@HOWS
async def test_mail_and_password_go_over_tls(
    authority: trustme.CA, trusted: None, monkeypatch: pytest.MonkeyPatch, from_the_start: bool
) -> None:
    async with smtp(STARTTLS, tls(authority, "127.0.0.1"), from_the_start=from_the_start) as server:
        await send(server, monkeypatch, from_the_start=from_the_start)
    assert len(server.mails) == 1 and any(line.startswith("AUTH") for line in server.lines)
    assert [line.split(" ")[0] for line in server.plain] == ([] if from_the_start else ["EHLO", "STARTTLS"])


@HOWS
@pytest.mark.parametrize("wrong", ["another authority", "another host"])
async def test_a_wrong_certificate_gets_nothing(
    authority: trustme.CA, trusted: None, monkeypatch: pytest.MonkeyPatch, from_the_start: bool, wrong: str
) -> None:
    served = tls(trustme.CA(), "127.0.0.1") if wrong == "another authority" else tls(authority, "mail.example.org")
    async with smtp(STARTTLS, served, from_the_start=from_the_start) as server:
        with pytest.raises(BlockError) as caught:
            await send(server, monkeypatch, from_the_start=from_the_start)
    error = caught.value
    assert (error.code, error.retryable) == ("mail_failed", False), "it stays wrong until a person mends it"
    assert error.message.startswith("the certificate of the mail server 127.0.0.1 is not valid: "), error.message
    assert ("not valid for '127.0.0.1'" in error.message) == (wrong == "another host")
    assert "SSL_CERT_FILE" in error.hint and PASSWORD not in f"{error.message}{error.hint}"
    assert server.mails == [] and not any(line.startswith(("AUTH", "MAIL")) for line in server.lines)


async def test_a_server_that_offers_no_tls_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with smtp(WITHOUT) as server:
        with pytest.raises(BlockError) as caught:
            await send(server, monkeypatch)
    assert "STARTTLS" in caught.value.message
    assert server.mails == [] and not any(line.startswith(("AUTH", "MAIL")) for line in server.lines)
