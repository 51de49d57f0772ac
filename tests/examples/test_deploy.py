"""The files in docs/howto/deploy: they parse, what they set exists, and what they start starts."""

from __future__ import annotations

import asyncio
import configparser
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest

from server.cli import weft as weft_command
from server.settings import load_settings
from server.variables import KNOWN
from tests.examples.conftest import Weft
from tests.support.server import ROOT, ServerProcess, free_port

FOLDER = Path(__file__).parents[2] / "docs" / "howto" / "deploy"
USER = 10001  # of the image
VALUES = {
    "WEFT_DB": "postgresql://weft:secret@db/weft",
    "WEFT_SECRET_KEY": "k" * 32,
    "WEFT_TOKEN": "t" * 43,
    "WEFT_BASE_URL": "https://weft.example.com",
}


def parsed(name: str) -> list[Any]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def units() -> Iterator[tuple[str, configparser.ConfigParser]]:
    for path in sorted(FOLDER.glob("*.service")):
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment]  # names of systemd have capital letters
        unit.read_string(path.read_text())
        yield path.name, unit


def can_start(arguments: list[str], environ: dict[str, str]) -> None:
    """`weft` has the command and its options, and the settings are accepted."""
    command = weft_command.commands[arguments[0]]
    with click.Context(weft_command) as parent:
        command.make_context(arguments[0], arguments[1:], parent=parent)
    assert environ.keys() <= set(KNOWN), environ.keys() - set(KNOWN)
    load_settings(environ, serves=arguments[0] == "serve")


def grace_of(arguments: list[str]) -> float:
    return float(arguments[arguments.index("--grace") + 1]) if "--grace" in arguments else 8.0


def containers(kinds: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Each container of a manifest, with the specification of its pod."""
    for kind in kinds:
        spec = kind.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        pod = spec.get("template", {}).get("spec", {})
        for container in pod.get("containers", ()):
            yield container, pod


def test_compose() -> None:
    (file,) = parsed("compose.yaml")
    for name, service in file["services"].items():
        if service["image"] != "weft":
            continue
        environ = dict(service["environment"])
        for key, value in environ.items():
            if (found := re.fullmatch(r"\$\{(\w+):\?\}", value)) is not None:
                environ[key] = VALUES[found[1]]
        environ["WEFT_DB"] = re.sub(r"\$\{POSTGRES_PASSWORD:\?\}", "secret", environ["WEFT_DB"])
        arguments = shlex.split(service["command"])
        can_start(arguments, environ)
        assert float(service["stop_grace_period"].removesuffix("s")) > grace_of(arguments), name
        assert set(service["depends_on"]) <= set(file["services"])
    assert {"server", "worker", "database"} == set(file["services"])
    named = {volume.partition(":")[0] for service in file["services"].values() for volume in service.get("volumes", ())}
    assert named == set(file["volumes"])


def test_the_health_check_of_compose_asks_the_server(weft: Weft) -> None:
    """It succeeds with a server that is there, and fails without one."""
    (file,) = parsed("compose.yaml")
    kind, program, *arguments = file["services"]["server"]["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "python")
    asked = "http://127.0.0.1:8765"
    assert arguments[-1].count(asked) == 1
    for url, healthy in ((weft.url, True), (f"http://127.0.0.1:{free_port(random.Random())}", False)):
        words = [*arguments[:-1], arguments[-1].replace(asked, url)]
        code = subprocess.run([sys.executable, *words], capture_output=True, timeout=60, check=False).returncode
        assert (code == 0) is healthy, url


def test_dockerfile() -> None:
    """What it copies, installs and runs exists; there is no Docker to build it with."""
    text = (FOLDER / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (copied,) = re.findall(r"(?m)^COPY (.*) \S+$", text)
    assert copied.split() == ["requirements-extras.lock", "dist/weft-*.whl"]
    (python,) = re.findall(r"(?m)^FROM python:([\d.]+)-slim$", text)
    assert f"Programming Language :: Python :: {python}" in project["classifiers"]
    for line in re.findall(r"(?m)^RUN weft (.*)$", text):
        group, name = line.split()
        assert name in getattr(weft_command.commands[group], "commands", {}), line
    (made,) = re.findall(r"useradd --system --uid (\d+) weft", text)
    assert re.findall(r"(?m)^USER (.*)$", text) == [made]  # a name does not pass `runAsNonRoot`


def test_systemd() -> None:
    found = []
    for name, unit in units():
        program, *arguments = shlex.split(unit["Service"]["ExecStart"].replace("%i", "1"))
        assert program.endswith("/weft")
        needs = VALUES if arguments[0] == "serve" else {k: v for k, v in VALUES.items() if k != "WEFT_TOKEN"}
        can_start(arguments, needs)
        assert float(unit["Service"]["TimeoutStopSec"]) > grace_of(arguments), name
        assert {"Unit", "Service", "Install"} == set(unit.sections())
        found.append(arguments[0])
    assert found == ["serve", "worker"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    """It reports names of settings that it does not know, and values that it cannot parse."""
    made = []
    for name, _ in units():
        path = tmp_path / name.replace("@.", "@1.")
        path.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", (FOLDER / name).read_text()))
        made.append(path)
    command = ["systemd-analyze", "verify", "--man=no", *map(str, made)]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = [line for line in verified.stderr.splitlines() if any(path.name in line for path in made)]
    assert (verified.returncode, said) == (0, []), verified.stderr


def test_kubernetes() -> None:
    kinds = parsed("kubernetes.yaml")
    assert [kind["kind"] for kind in kinds] == [
        *("ConfigMap", "Deployment", "Service", "Ingress", "PodDisruptionBudget", "Deployment", "CronJob")
    ]
    settings = kinds[0]["data"]
    started = []
    for container, pod in containers(kinds):
        environ = {**settings, **VALUES, **{each["name"]: each["value"] for each in container.get("env", ())}}
        can_start(container["args"], environ)
        assert pod.get("terminationGracePeriodSeconds", 30) > grace_of(container["args"])
        sources = [next(iter(source.values()))["name"] for source in container["envFrom"]]
        assert sources == ["weft", "weft"]
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
        assert pod["securityContext"]["runAsUser"] == USER
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        started.append(container["args"][0])
    assert started == ["serve", "worker", "doctor"]
    server = next(container for container, _ in containers(kinds) if container["args"][0] == "serve")
    for probe in ("readinessProbe", "livenessProbe"):
        asked = server[probe]["httpGet"]
        assert asked["port"] in {port["name"] for port in server["ports"]}
        # The port of the metrics is asked by address, as probes and Prometheus do.
        headers = [header["value"] for header in asked.get("httpHeaders", ())]
        assert headers == ([] if asked["port"] == "metrics" else [settings["WEFT_ALLOWED_HOSTS"]])


def test_prometheus_can_scrape_each_container() -> None:
    """The port with the metrics is not on the loopback of the container, and the manifest names it."""
    services = parsed("compose.yaml")[0]["services"].values()
    commands = [shlex.split(each["command"]) for each in services if each["image"] == "weft"]
    kinds = parsed("kubernetes.yaml")
    for kind in kinds:
        if kind["kind"] == "Deployment":
            template = kind["spec"]["template"]
            (container,) = template["spec"]["containers"]
            ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
            assert ports["metrics"] == template["metadata"]["annotations"]["prometheus.io/port"]
            assert ports["metrics"] == container["args"][container["args"].index("--metrics-port") + 1]
            commands.append(container["args"])
    assert [command[0] for command in commands] == ["serve", "worker"] * 2
    assert all(command[command.index("--metrics-host") + 1] == "0.0.0.0" for command in commands)


def command_lines() -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """What the files start: where it is, its arguments and its own environment."""
    for name, service in parsed("compose.yaml")[0]["services"].items():
        if service["image"] == "weft":
            yield f"compose {name}", shlex.split(service["command"]), service["environment"]
    for name, unit in units():
        yield name, shlex.split(unit["Service"]["ExecStart"].replace("%i", "1"))[1:], {}
    kinds = parsed("kubernetes.yaml")
    for container, _ in containers(kinds):
        own = {each["name"]: each["value"] for each in container.get("env", ())}
        yield f"kubernetes {container['args'][0]}", container["args"], {**kinds[0]["data"], **own}


@pytest.mark.proof
async def test_each_command_line_starts_and_stops(postgres: str, tmp_path: Path) -> None:
    """On a port of the test's own, and on loopback alone."""
    from tests.support.postgres import by_its_clock

    for where, arguments, environ in command_lines():
        own = {name: value for name, value in environ.items() if "$" not in value}
        port = free_port(random.Random())
        at = {"WEFT_DB": by_its_clock(postgres), "WEFT_HOST": "127.0.0.1", "WEFT_PORT": str(port)}
        all_of_it = {**VALUES, **own, **at}
        if arguments == ["doctor"]:
            doctor = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "server", "doctor"), cwd=ROOT, env={**os.environ, **all_of_it}
            )
            assert await doctor.wait() == 0
            continue
        here = {"--metrics-port": "0", "--metrics-host": "127.0.0.1"}
        command = [here.get(before, each) for before, each in pairwise(["", *arguments])]
        process = await ServerProcess.start(tmp_path / "no", port, tmp_path / "log", command=command, **all_of_it)
        try:
            await process.ready(60)
            assert await process.stop(60) == 0, where
        except BaseException:
            print(where, (tmp_path / "log").read_text())
            raise
        finally:
            await process.clean_up()


def test_the_names_in_all_files_exist() -> None:
    for path in FOLDER.iterdir():
        assert set(re.findall(r"\bWEFT_[A-Z_]+\b", path.read_text())) <= set(KNOWN), path.name
    page = (FOLDER.parent / "run-on-postgresql.md").read_text()
    assert set(re.findall(r"\bWEFT_[A-Z_]+\b", page)) <= set(KNOWN)
    pages = page + (FOLDER.parent / "observe.md").read_text()
    assert all(f"(deploy/{path.name})" in pages for path in FOLDER.iterdir())
