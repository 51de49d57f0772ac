"""Exports of Sim and n8n with databases run after their import, on real ones."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from tests.promises.test_imports import OFFLINE, block, export
from tests.support.command import weft
from tests.support.mariadb import PASSWORD, USER, NoMariadb, mariadb
from tests.support.postgres import as_url, socket_of
from tests.support.postgres_proxy import proxy_in_a_thread
from tests.support.runs import engine_on, ran

Json = dict[str, Any]
pytestmark = pytest.mark.proof
NAME = 'O\'Neil "x"; DROP TABLE people; --'
FIELDS = [{"name": "name", "type": "string"}, {"name": "age", "type": "number"}]


DONE = {"rows": [{"name": NAME, "age": 40}], "found": 1, "changed": 1, "gone": 1, "added": 1}


def exported(kind: str) -> Json:
    """Adds two people, changes one, reads, and deletes one, with the input of the run."""
    start = block("start_trigger", "Start", {"inputFormat": FIELDS}, trigger=True)

    def asked(name: str, operation: str, **settings: Any) -> Json:
        return block(kind, name, {"operation": operation, "port": "5432", "ssl": "preferred", **settings})

    return export(
        "people", start,
        asked("Add", "insert", table="people", data='{"name": "<start.name>", "age": <start.age>}'),
        asked("Another", "execute", query="INSERT INTO people (name, age) VALUES ('Ann', <start.age>)"),
        asked("Older", "update", table="people", data='{"age": 40}', where="name = '<start.name>'"),
        asked("Find", "query", query="SELECT name, age FROM people"
              " WHERE age > <start.age> AND name LIKE '<start.name>%'"),
        asked("Remove", "delete", table="people", where="age = <find.rows[0].age>"),
        block("response", "Answer", {"dataMode": "json", "data": json.dumps({
            "rows": "<find.rows>", "found": "<find.rowCount>", "changed": "<older.rowCount>",
            "gone": "<remove.rowCount>", "added": "<another.rowCount>",
        })}),
    )  # fmt: skip


async def imported(folder: Path, document: Json, secret: str, address: str, **input: Any) -> Json:
    """Return the output of a run of what `weft import` makes of a document."""
    (folder / "export.json").write_text(json.dumps(document), encoding="utf-8")
    done = weft("import", str(folder / "export.json"), "-o", str(folder / "flow.json"), environ=OFFLINE)
    assert done.returncode == 0 and secret in done.stderr, done.stderr
    flow = json.loads((folder / "flow.json").read_text(encoding="utf-8"))
    async with engine_on(folder / "weft.db", env={secret: address}, allow_private=["127.0.0.1"]) as engine:
        run = await ran(engine, flow, input=input)
    assert run.status == "succeeded", run.error
    output: Json = run.output
    return output


async def test_a_workflow_of_sim_on_postgresql(postgres: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (id serial PRIMARY KEY, name text, age int)")
        with proxy_in_a_thread(socket_of(postgres), threading.Event().is_set) as proxy:
            address = as_url(postgres, host="127.0.0.1", port=str(proxy.port), sslmode="disable")
            output = await imported(tmp_path, exported("postgresql"), "POSTGRESQL_URL", address, name=NAME, age=30)
        assert output == DONE
        assert connection.execute("SELECT name, age FROM people").fetchall() == [("Ann", 30)]


async def test_a_workflow_of_sim_on_mysql(tmp_path: Path) -> None:
    try:
        with mariadb() as server, server.connect() as link, link.cursor() as cursor:
            cursor.execute("CREATE TABLE people (id int AUTO_INCREMENT PRIMARY KEY, name text, age int)")
            address = f"mysql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{server.port}/shop?ssl-mode=REQUIRED"
            output = await imported(tmp_path, exported("mysql"), "MYSQL_URL", address, name=NAME, age=30)
            assert output == DONE
            cursor.execute("SELECT name, age FROM people")
            assert cursor.fetchall() == (("Ann", 30),)
    except NoMariadb as error:
        pytest.skip(str(error))


async def test_a_workflow_of_n8n_on_postgresql(postgres: str, tmp_path: Path) -> None:
    columns = {"mappingMode": "defineBelow", "matchingColumns": ["name"]}
    given = {"name": "={{ $json.body.name }}", "age": "={{ $json.body.age }}"}
    settings: tuple[Json, ...] = (
        {"operation": "insert", "columns": {**columns, "value": given}},
        {"operation": "upsert", "columns": {**columns, "value": {"name": "={{ $json.name }}", "age": 41}}},
        {"operation": "update", "columns": {**columns, "value": {"name": "={{ $json.name }}", "age": 42}}},
        {"operation": "select", "where": {"values": [{"column": "age", "condition": ">", "value": 41}]}},
        {"operation": "executeQuery",
         "query": "SELECT name, age + $2::int AS age FROM people WHERE name = '{{ $json.name }}' AND age = $1",
         "options": {"queryReplacement": "={{ $json.age }}, 1"}},
    )  # fmt: skip
    names = ["Hook", "Add", "Set", "Change", "Find", "Ask", "Answer"]
    table = {"schema": {"__rl": True, "value": "public"}, "table": {"__rl": True, "value": "people"}}
    nodes = [
        {"name": "Hook", "type": "n8n-nodes-base.webhook", "typeVersion": 2, "parameters": {"httpMethod": "POST"}},
        *({"name": name, "type": "n8n-nodes-base.postgres", "typeVersion": 2.5, "parameters": {**table, **row}}
          for name, row in zip(names[1:], settings, strict=False)),
        {"name": "Answer", "type": "n8n-nodes-base.set", "typeVersion": 3.4, "parameters": {"assignments": {
            "assignments": [{"name": "age", "value": "={{ $json.age }}", "type": "number"}]}}},
    ]  # fmt: skip
    wires = {a: {"main": [[{"node": b, "type": "main", "index": 0}]]} for a, b in pairwise(names)}
    document = {"name": "people", "nodes": nodes, "connections": wires}
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (name text PRIMARY KEY, age int)")
        with proxy_in_a_thread(socket_of(postgres), threading.Event().is_set) as proxy:
            address = as_url(postgres, host="127.0.0.1", port=str(proxy.port), sslmode="disable")
            body = {"name": NAME, "age": 30}
            output = await imported(tmp_path, document, "POSTGRES_URL", address, body=body)
        assert connection.execute("SELECT name, age FROM people").fetchall() == [(NAME, 42)]
    while "results" in output:  # of a loop for the items of each node
        [output] = output["results"]
    assert output == {"age": 43}
