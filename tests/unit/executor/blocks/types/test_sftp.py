"""`sftp` blocks: whole engines and a real server, which loses connections at the worst moments."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from executor.blocks.types.sftp import block
from executor.blocks.types.sftp_client import Session
from executor.open.engine import Engine
from executor.service.views import RunView
from tests.support.documents import chain
from tests.support.runs import engine_on, outputs, ran
from tests.support.sftp import PASSPHRASE, PASSWORD, Sftp, sftp

AT_ONCE = {"policy": {"retry": {"max_attempts": 3, "initial_ms": 1}}}


class At:
    """An engine with the connection `files` to a server."""

    def __init__(self, engine: Engine, server: Sftp) -> None:
        self.engine, self.server, self.root = engine, server, server.root

    async def ran(self, operation: str, path: str, **params: Any) -> RunView:
        given = {"operation": operation, "server": self.server.place, "connection": "files", "path": path, **params}
        return await ran(self.engine, chain("f", f={"type": "sftp", "params": given} | AT_ONCE))

    async def output(self, operation: str, path: str, **params: Any) -> Any:
        view = await self.ran(operation, path, **params)
        assert view.status == "succeeded", view.error
        return view.output

    async def error(self, operation: str, path: str, **params: Any) -> dict[str, Any]:
        view = await self.ran(operation, path, **params)
        assert view.status == "failed" and view.error is not None
        return dict(view.error)

    def names(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))


@asynccontextmanager
async def opened(folder: Path, connection: Any = None, **more: Any) -> AsyncIterator[At]:
    async with (
        sftp(folder / "files", **more) as server,
        engine_on(folder / "weft.db", allow_private=("127.0.0.1",)) as engine,
    ):
        await engine.connections.put("files", connection or server.connection(), [server.place])
        yield At(engine, server)


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[At]:
    async with opened(tmp_path) as one:
        yield one


async def test_each_operation(at: At) -> None:
    assert await at.output("write", "/in/a.csv", content="a,b\n", make_folders=True) == {"path": "/in/a.csv", "size": 4}
    assert (at.root / "in/a.csv").read_bytes() == b"a,b\n"
    await at.output("write", "/in/b.json", content={"n": 1})
    await at.output("make_folder", "/in/done")
    await at.output("make_folder", "/in/done")  # one that is there does no harm
    os.symlink("a.csv", at.root / "in/link.csv")
    (at.root / "in/.hidden").write_text("")
    listed = await at.output("list", "/in")
    kinds = {one["name"]: one["kind"] for one in listed["entries"]}
    assert kinds == {"a.csv": "file", "b.json": "file", "done": "folder", "link.csv": "link"}
    assert [one["size"] for one in listed["entries"][:2]] == [4, 7]
    assert listed["entries"][0]["path"] == "/in/a.csv" and listed["cut"] is False and listed["count"] == 4
    assert listed["entries"][0]["modified"] == int((at.root / "in/a.csv").stat().st_mtime) * 1000
    short = await at.output("list", "/in", pattern="*.csv", max_entries=1)
    assert short["count"] == 1 and short["cut"] is True
    await at.output("move", "/in/a.csv", to="/in/done/z.csv")
    await at.output("delete", "/in/link.csv")
    assert at.names() == ["in", "in/.hidden", "in/b.json", "in/done", "in/done/z.csv"]
    await at.output("delete", "/in/done/z.csv")
    await at.output("delete", "/in/done")
    assert at.names() == ["in", "in/.hidden", "in/b.json"]


async def test_a_test_of_the_connection_signs_in(at: At) -> None:
    connections, server = at.engine.connections, at.server
    found = await connections.test("files")
    assert (found.outcome, found.who, found.called) == ("ok", "ada", f"SSH {server.place}"), found
    new = [
        (server.connection(host_key=""), server.place, "failed"),
        (server.connection("another password"), server.place, "refused"),
        (server.connection(), "127.0.0.1:1", "unreachable"),
        (server.connection(), "*.example.com", "nothing"),
    ]
    tests = [await connections.test("new", new=(connection, [host])) for connection, host, _ in new]
    assert [one.outcome for one in tests] == [outcome for *_, outcome in new], tests
    assert server.fingerprint in tests[0].message and "another password" not in str(tests)


async def test_a_file_of_a_run_goes_there_and_back(at: At) -> None:
    content = os.urandom(3_000_000)
    (at.root / "big.bin").write_bytes(content)
    where = {"server": at.server.place, "connection": "files"}
    read = {"type": "sftp", "params": {"operation": "read", "path": "big.bin", **where}}
    write = {"type": "sftp", "params": {"operation": "write", "path": "copy.bin", "content": "<read.file>", **where}}
    view = await ran(at.engine, chain("read", "write", read=read, write=write))
    assert view.output == {"path": "copy.bin", "size": len(content)}, view.error
    assert (at.root / "copy.bin").read_bytes() == content
    file = outputs(view)["read"]
    assert file["file"]["name"] == "big.bin" and file["size"] == len(content)


async def test_what_is_there_is_replaced_only_if_permitted(at: At) -> None:
    (at.root / "a.txt").write_text("old")
    (at.root / "b.txt").write_text("other")
    error = await at.error("write", "a.txt", content="new", overwrite=False)
    assert error["code"] == "sftp_exists"
    assert (await at.error("move", "a.txt", to="b.txt", overwrite=False))["code"] == "sftp_exists"
    assert (at.root / "a.txt").read_text() == "old" and at.names() == ["a.txt", "b.txt"]
    await at.output("write", "a.txt", content="new")
    await at.output("move", "a.txt", to="b.txt")
    assert (at.root / "b.txt").read_text() == "new" and at.names() == ["b.txt"]


async def test_a_server_that_replaces_no_files(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: Any, old: bytes, new: bytes) -> None:
        raise asyncssh.SFTPOpUnsupported("no")

    monkeypatch.setattr("asyncssh.sftp.SFTPClientHandler.posix_rename", refuse)
    await at.output("write", "a.txt", content="new")
    assert (await at.error("write", "a.txt", content="newer"))["code"] == "sftp_exists"
    assert (at.root / "a.txt").read_text() == "new" and at.names() == ["a.txt"]


@pytest.mark.parametrize("cut", ["write", "before:posix_rename", "after:posix_rename"])
async def test_a_connection_lost_in_a_write(at: At, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No reader sees half a file, and one that took the file away does not get it a second time."""
    seen: list[list[str]] = []
    find = Session.find

    async def look(self: Session, path: str) -> Any:
        seen.append([name for name in at.names() if not name.startswith(".")])
        if at.server.cut == "" and cut.startswith("after") and (at.root / "a.txt").exists():
            (at.root / "a.txt").rename(at.root / "taken.txt")
        return await find(self, path)

    monkeypatch.setattr(Session, "find", look)
    at.server.cut = cut
    text = "x" * 100_000
    assert await at.output("write", "a.txt", content=text) == {"path": "a.txt", "size": len(text)}
    assert at.names() == ["taken.txt" if cut.startswith("after") else "a.txt"]
    assert (at.root / at.names()[0]).read_text() == text
    assert at.server.asked.count("posix_rename") == (1 if cut in ("write", "after:posix_rename") else 2)
    assert all(names in ([], ["a.txt"], ["taken.txt"]) for names in seen)


async def test_what_is_left_of_a_write_that_fails_for_good(at: At) -> None:
    (at.root / "sub").mkdir(mode=0o500)
    (at.root / "folder").mkdir()
    assert (await at.error("write", "folder", content="x"))["code"] == "sftp_failed"
    assert (await at.error("write", "missing/a.txt", content="x"))["code"] == "sftp_not_found"
    assert [name for name in at.names() if name.startswith(".weft")] == []


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_connection_lost_in_a_delete(at: At, when: str) -> None:
    (at.root / "a.txt").write_text("a")
    at.server.cut = f"{when}:remove"
    assert await at.output("delete", "a.txt") == {"path": "a.txt"}
    assert at.names() == [] and at.server.asked.count("remove") == (2 if when == "before" else 1)
    assert (await at.error("delete", "a.txt"))["code"] == "sftp_not_found"


async def test_a_new_file_in_the_place_of_a_deleted_one_is_left(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    (at.root / "a.txt").write_text("a")
    at.server.cut = "after:remove"
    find = Session.find

    async def look(self: Session, path: str) -> Any:
        if at.server.cut == "" and not (at.root / "a.txt").exists():
            (at.root / "a.txt").write_text("another one")
        return await find(self, path)

    monkeypatch.setattr(Session, "find", look)
    await at.output("delete", "a.txt")
    assert (at.root / "a.txt").read_text() == "another one"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_connection_lost_in_a_move(at: At, when: str) -> None:
    (at.root / "a.txt").write_text("a")
    at.server.cut = f"{when}:posix_rename"
    assert await at.output("move", "a.txt", to="b.txt") == {"path": "a.txt", "to": "b.txt"}
    assert at.names() == ["b.txt"]
    assert (await at.error("move", "a.txt", to="c.txt"))["code"] == "sftp_not_found"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_connection_lost_while_a_folder_is_made(at: At, when: str) -> None:
    at.server.cut = f"{when}:mkdir"
    await at.output("make_folder", "one/two")
    assert at.names() == ["one", "one/two"]


async def test_a_file_that_is_too_large_or_changes_or_is_none(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    (at.root / "a.txt").write_text("a" * 1000)
    assert (await at.error("read", "nothing"))["code"] == "sftp_not_found"
    assert (await at.error("read", "/"))["code"] == "sftp_failed"
    os.mkfifo(at.root / "pipe")
    assert (await at.error("read", "pipe"))["code"] == "sftp_failed"
    assert at.engine.parts.files.bytes_max > 1000
    at.engine.parts.files.bytes_max = 999
    assert (await at.error("read", "a.txt"))["code"] == "file_too_large"
    at.engine.parts.files.bytes_max = 10_000
    stat = Session.stat

    async def older(self: Session, path: str) -> Any:
        found = await stat(self, path)
        os.utime(at.root / "a.txt", (1, 1))
        return found

    monkeypatch.setattr(Session, "stat", older)
    os.utime(at.root / "a.txt", (5, 5))
    view = await at.ran("read", "a.txt")
    assert view.status == "succeeded"  # the second attempt finds it the same


# --- who signs in where ---


async def test_a_server_without_a_known_host_key(tmp_path: Path) -> None:
    async with opened(tmp_path) as at:
        await at.engine.connections.put("files", at.server.connection(host_key=""), [at.server.place])
        error = await at.error("list", "/")
        assert error["code"] == "sftp_host_key" and at.server.users == []
        assert at.server.fingerprint in error["message"] and "(ssh-ed25519)" in error["message"]
        assert error["hint"].endswith(at.server.fingerprint)
        other = asyncssh.generate_private_key("ssh-ed25519")
        for host_key in (other.get_fingerprint(), other.export_public_key().decode().strip()):
            await at.engine.connections.put("files", at.server.connection(host_key=host_key), [at.server.place])
            error = await at.error("list", "/")
            assert error["code"] == "sftp_host_key" and at.server.fingerprint in error["message"]
        assert at.server.users == []
        for host_key in (at.server.public_key, f"{other.get_fingerprint()}\n{at.server.public_key}"):
            await at.engine.connections.put("files", at.server.connection(host_key=host_key), [at.server.place])
            await at.output("list", "/")


async def test_the_known_key_of_several_is_asked_for(tmp_path: Path) -> None:
    keys = [asyncssh.generate_private_key("ecdsa-sha2-nistp256"), asyncssh.generate_private_key("ssh-ed25519")]
    async with opened(tmp_path, server_host_keys=keys) as at:
        for key in keys:
            host_key = key.export_public_key().decode().strip()
            await at.engine.connections.put("files", at.server.connection(host_key=host_key), [at.server.place])
            await at.output("list", "/")


@pytest.mark.filterwarnings("ignore:Warning. bcrypt.kdf")  # one round is quick
@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
async def test_a_private_key(tmp_path: Path, passphrase: str | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "asyncssh")
    async with opened(tmp_path) as at:
        key = at.server.private_key(passphrase)
        connection = at.server.connection(secret=key, passphrase=passphrase or "")
        await at.engine.connections.put("files", connection, [at.server.place])
        await at.output("list", "/")
        if passphrase:
            for wrong in ("", "another passphrase"):
                wrong_one = at.server.connection(secret=key, passphrase=wrong)
                await at.engine.connections.put("files", wrong_one, [at.server.place])
                error = await at.error("list", "/")
                assert error["code"] == "sftp_login" and "passphrase" in error["message"].lower()
        other = asyncssh.generate_private_key("ssh-ed25519").export_private_key("openssh").decode()
        await at.engine.connections.put("files", at.server.connection(secret=other), [at.server.place])
        assert "refused the user 'ada' or the key" in (await at.error("list", "/"))["message"]
        runs = [await at.engine.runs.view(row.id) for row in await at.engine.runs.list()]
        records = repr([await at.engine.store.read_events(run.id) for run in runs]) + repr(runs) + caplog.text
        for secret in (key.splitlines()[2], other.splitlines()[2], PASSPHRASE):
            assert secret not in records
            assert all(secret.encode() not in path.read_bytes() for path in tmp_path.glob("weft.db*"))


async def test_a_wrong_password_is_in_no_record(at: At, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "asyncssh")
    wrong = at.server.connection(secret="another password")
    await at.engine.connections.put("files", wrong, [at.server.place])
    error = await at.error("list", "/")
    assert error["code"] == "sftp_login" and "check the credential of the connection files" in error["hint"]
    assert "another password" not in repr(error) + caplog.text and PASSWORD not in caplog.text


async def test_nothing_of_this_machine_is_used(at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not its keys, known hosts, settings and agent."""
    ssh = tmp_path / "home" / ".ssh"
    ssh.mkdir(parents=True)
    (ssh / "id_ed25519").write_text(at.server.private_key())
    (ssh / "known_hosts").write_text(f"* {at.server.public_key}\n")
    (ssh / "config").write_text(f"Host *\n  IdentityFile {ssh}/id_ed25519\n  User ada\n")
    monkeypatch.setenv("HOME", str(ssh.parent))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    other = asyncssh.generate_private_key("ssh-ed25519").export_private_key("openssh").decode()
    await at.engine.connections.put("files", at.server.connection(secret=other), [at.server.place])
    assert (await at.error("list", "/"))["code"] == "sftp_login" and at.server.users == []
    await at.engine.connections.put("files", at.server.connection(host_key=""), [at.server.place])
    assert (await at.error("list", "/"))["code"] == "sftp_host_key"


async def test_where_it_may_go(tmp_path: Path) -> None:
    async with opened(tmp_path) as at:
        await at.engine.connections.put("files", at.server.connection(), ["127.0.0.1:22"])
        assert (await at.error("list", "/"))["code"] == "secret_host_refused"
        await at.engine.connections.put("files", at.server.connection(), ["192.168.0.7:22"])
        error = await at.error("list", "/", server="192.168.0.7:22")
        assert error["code"] == "address_refused" and at.server.users == []
        given = {"url": "http://127.0.0.1:1/", "connection": "files"}
        view = await ran(at.engine, chain("h", h={"type": "http", "params": given}))
        assert view.error is not None and "signs in by SSH" in view.error["message"]


async def test_a_server_that_is_not_there_or_does_not_answer(at: At, tmp_path: Path) -> None:
    await at.engine.connections.put("files", at.server.connection(), ["127.0.0.1:9", at.server.place])
    assert (await at.error("list", "/", server="127.0.0.1:9"))["code"] == "sftp_connection"
    assert (await at.error("list", "/", timeout_s=0.001))["code"] == "sftp_timeout"
    assert (await at.error("list", "a\nb"))["code"] == "params_invalid"


def test_what_a_document_lacks() -> None:
    def found(**params: Any) -> list[str]:
        check = block.spec.check
        assert check is not None
        return [one.pointer for one in check(params)]

    assert found(operation="write") == ["/content"] and found(operation="move") == ["/to"]
    assert found(operation="move", to="x") == found(operation="list") == found() == []
    only_reads = block.spec.only_reads
    assert only_reads is not None
    assert only_reads({}) and only_reads({"operation": "read"}) and not only_reads({"operation": "delete"})
