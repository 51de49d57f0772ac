"""Statements of Sim and n8n: values become parameters, and what cannot is a finding."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.imports.sim import convert
from compiler.imports.statements import Span, Statement, reads
from executor.blocks.types.registry import Registry
from tests.unit.compiler.imports.sim_documents import block, compiled
from tests.unit.compiler.imports.test_n8n import only

Json = dict[str, Any]
REGISTRY = Registry.load()


def bound(query: str, *, mysql: bool = False) -> tuple[str, Json, int]:
    """A query whose values are written `[name]`, and how much was lost."""
    lost: list[str] = []
    statement = Statement(mysql=mysql, lose=lambda message, hint: lost.append(message))
    spans = [Span(at, query.index("]", at) + 1, query[at + 1 : query.index("]", at)])
             for at, one in enumerate(query) if one == "["]  # fmt: skip
    return statement.text(query, spans, lambda text, name: text), statement.parameters, len(lost)


@pytest.mark.parametrize(
    ("query", "text", "parameters"),
    [
        ("SELECT * FROM t WHERE id = [id]", "SELECT * FROM t WHERE id = :id", {"id": "[id]"}),
        ("SELECT [a], '[a]', '[b]'", "SELECT :a, :a, :b", {"a": "[a]", "b": "[b]"}),
        ("... LIKE '%it''s [q]%' -- [q]", "... LIKE :q -- ", {"q": "%it's [q]%"}),
        ("... > now() - interval '[n] days'", "... > now() - CAST(:n AS interval)", {"n": "[n] days"}),
        ("... = E'a\\'[x]' AND b = [y]", "... = :x AND b = :y", {"x": "a'[x]", "y": "[y]"}),
        ("SELECT $x$ [a] $x$, [b]::int", "SELECT $x$  $x$, :b::int", {"b": "[b]"}),
        ("... a IS DISTINCT FROM [a] LIMIT [n]", "... a IS DISTINCT FROM :a LIMIT :n", {"a": "[a]", "n": "[n]"}),
    ],
)
def test_values_become_parameters(query: str, text: str, parameters: Json) -> None:
    assert bound(query) == (text, parameters, 0)


def test_the_texts_of_mysql_are_others() -> None:
    query = """SELECT "a [x]", 'b\\'[y]\\n', `c`, DATE '[d]' # [z]"""
    made = ("SELECT :x, :y, `c`, CAST(:d AS date) # ", {"x": "a [x]", "y": "b'[y]\n", "d": "[d]"}, 0)
    assert bound(query, mysql=True) == made
    assert bound("... INTERVAL '[n]' DAY", mysql=True)[0] == "... INTERVAL :n DAY"


@pytest.mark.parametrize(
    "query",
    ["[all]", "SELECT * FROM [t]", "SELECT * FROM a_[t]", 'SELECT "[c]" FROM t', "SELECT * FROM t WHERE [w]",
     "SELECT * FROM t WHERE [w] ORDER BY [c]", "INSERT INTO t VALUES [v]", "SELECT a AS [b]", "UPDATE [s].t SET a = 1"],
)  # fmt: skip
def test_what_is_no_value_stays_and_is_lost(query: str) -> None:
    text, parameters, lost = bound(query)
    assert (text, parameters) == (query, {}) and lost == query.count("[")


def test_two_values_of_one_name_are_two_parameters() -> None:
    statement = Statement(mysql=False, lose=lambda message, hint: None)
    assert [statement.put(value, "1 a-b") for value in (1, 2, 1)] == [":p_1_a_b", ":p_1_a_b_2", ":p_1_a_b"]


def test_which_statements_only_read() -> None:
    assert all(map(reads, ("SELECT 1", " with a as (select 1) select * from a", "show tables", "EXPLAIN SELECT 1")))
    assert not any(map(reads, ("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", "CALL f()", "SELECT 1 INTO t")))


def sim(kind: str, **settings: Any) -> tuple[Json, list[str], list[tuple[str, str]]]:
    """(params, what was lost, the errors of the compiler: code and pointer) of a block after a start."""
    start = block(
        "s", "start_trigger", "Start", inputFormat=[{"name": name, "type": "any"} for name in ("id", "q", "t")]
    )
    document = {
        "version": "1.0", "blocks": [start, block("b", kind, "Rows", **settings)], "loops": {},
        "connections": [{"source": "s", "target": "b"}],
    }  # fmt: skip
    made = convert(document, catalog=REGISTRY)
    errors = [(one.code, one.pointer) for one in compiled(document, REGISTRY).diagnostics if one.severity == "error"]
    return made.document["blocks"]["b"]["params"], [one.message for one in made.diagnostics], errors


def test_a_query_of_sim() -> None:
    params, lost, errors = sim(
        "postgresql", query="SELECT * FROM t WHERE a < b AND c > 2 AND id = <start.id> AND q LIKE '%<start.q>%'"
    )
    assert params == {
        "database": "${POSTGRESQL_URL}", "read_only": True, "max_rows": 10_000,
        "query": "SELECT * FROM t WHERE a < b AND c > 2 AND id = :id AND q LIKE :q",
        "parameters": {"id": "<start.id>", "q": "%<start.q>%"},
    }  # fmt: skip
    assert lost == ['PostgreSQL "Rows": Its database is not imported.'] and not errors


def test_rows_of_sim_are_written_with_parameters() -> None:
    data = '{"id": <start.id>, "name": "<start.q>", "n": 1}'
    params, _, errors = sim("postgresql", operation="insert", table="app.users", data=data)
    assert params["query"] == 'INSERT INTO "app"."users" ("id", "name", "n") VALUES (:id, :name, :n) RETURNING *'
    assert params["parameters"] == {"id": "<start.id>", "name": "<start.q>", "n": 1}
    assert params["read_only"] is False and not errors
    params, _, _ = sim("mysql", operation="update", table="users", data={"name": "<start.q>"}, where="id = <start.id>")
    assert params["query"] == "UPDATE `users` SET `name` = :name WHERE id = :id"
    params, _, _ = sim("mysql", operation="update", table="users", data={"name": "N"}, where='{"name": "M"}')
    assert params["query"] == "UPDATE `users` SET `name` = :name_2 WHERE `name` = :name"
    params, lost, _ = sim("postgresql", operation="delete", table="users")
    assert params["query"] == 'DELETE FROM "users" WHERE false RETURNING *' and len(lost) == 2


def test_the_address_of_sim_has_no_password() -> None:
    account = {"host": "db.example", "port": "5433", "database": "shop", "username": "ann", "password": "{{PG}}"}
    params, lost, errors = sim("postgresql", query="SELECT 1", ssl="required", **account)
    assert params["database"] == "postgresql://ann@db.example:5433/shop?sslmode=require"
    assert params["connection"] == "postgresql" and not errors
    assert lost == ['PostgreSQL "Rows": Its password is not imported.']
    params, _, _ = sim("mysql", query="SELECT 1", **(account | {"host": "{{HOST}}"}))
    assert params["database"] == "${MYSQL_URL}" and "connection" not in params


@pytest.mark.parametrize(
    "settings",
    [{"query": "<start.q>"}, {"query": "SELECT * FROM <start.t>"}, {"query": "SELECT '{{KEY}}'"},
     {"operation": "insert", "table": "t", "data": "<start.q>"},
     {"operation": "delete", "table": "<start.t>", "where": "id = 1"}],
)  # fmt: skip
def test_a_text_that_a_run_would_write_is_an_error_at_the_query(settings: Json) -> None:
    assert ("param_invalid", "/blocks/1") in [(code, at[:9]) for code, at in sim("postgresql", **settings)[2]]


def test_the_number_of_rows_has_another_name() -> None:
    def read(**settings: Any) -> str:
        answer = block("r", "response", data="<rows.rowCount> <rows.rows[0].id>", dataMode="json")
        document = {"blocks": [block("b", "postgresql", "Rows", **settings), answer], "connections": [], "loops": {}}
        body: str = convert(document, catalog=REGISTRY).document["blocks"]["r"]["params"]["body"]
        return body

    assert read(query="SELECT 1") == "<rows.count> <rows.rows[0].id>"
    assert read(operation="execute", query="DELETE FROM t") == "<rows.affected> <rows.rows[0].id>"


def test_what_sim_does_beside_statements_stays_a_block_that_fails() -> None:
    params, lost, _ = sim("postgresql", operation="introspect", schema="public")
    assert "was not imported from Sim. Replace it with the block sql" in params["code"] and len(lost) == 1


def n8n(**settings: Any) -> tuple[str, Json]:
    kind = settings.pop("kind", "postgres")
    params = only(kind, 2.5, table="t", **settings)["params"]
    return params.get("query", ""), params.get("parameters", {})


def test_rows_of_n8n() -> None:
    columns = {"mappingMode": "defineBelow", "matchingColumns": ["id"], "value": {"id": "={{ $json.id }}", "n": 1}}
    given = {"id": "<start.id>", "n": 1}
    into = 'INSERT INTO "t" ("id", "n") VALUES (:id, :n)'
    assert n8n(operation="insert", columns=columns) == (f"{into} RETURNING *", given)
    upsert = f'{into} ON CONFLICT ("id") DO UPDATE SET "n" = :n RETURNING *'
    assert n8n(operation="upsert", columns=columns) == (upsert, given)
    update, values = n8n(operation="update", columns=columns)
    assert update == 'UPDATE "t" SET "n" = :n WHERE "id" = :id RETURNING *' and values == given
    older = {"columnToMatchOn": "id", "valueToMatchOn": 7, "valuesToSend": {"values": [{"column": "n", "value": 1}]}}
    changed = "INSERT INTO `t` (`id`, `n`) VALUES (:id, :n) ON DUPLICATE KEY UPDATE `n` = :n"
    assert n8n(kind="mySql", operation="upsert", **older) == (changed, {"id": 7, "n": 1})
    listed = {"mappingMode": "autoMapInputData", "value": None, "schema": [{"id": "a"}, {"id": "b", "removed": True}]}
    assert n8n(operation="insert", columns=listed) == (
        'INSERT INTO "t" ("a") VALUES (:a) RETURNING *',
        {"a": "<start.a>"},
    )
    assert n8n(operation="insert", columns={"mappingMode": "autoMapInputData"}) == ("", {})


def test_rows_that_n8n_selects_and_deletes() -> None:
    where = {"values": [{"column": "a", "condition": "LIKE", "value": "x%"}, {"column": "b", "condition": "IS NULL"}]}
    sort = {"values": [{"column": "a", "direction": "DESC"}]}
    query, values = n8n(operation="select", where=where, combineConditions="OR", sort=sort, returnAll=True,
                        options={"outputColumns": ["a"]})  # fmt: skip
    assert query == 'SELECT "a" FROM "t" WHERE "a" LIKE :a OR "b" IS NULL ORDER BY "a" DESC' and values == {"a": "x%"}
    deleted = n8n(operation="deleteTable", deleteCommand="delete", where=where)[0]
    assert deleted == 'DELETE FROM "t" WHERE "a" LIKE :a AND "b" IS NULL'
    assert n8n(operation="deleteTable", restartSequences=True)[0] == 'TRUNCATE TABLE "t" RESTART IDENTITY'
    assert (
        n8n(operation="deleteTable", deleteCommand="drop", options={"cascade": True})[0]
        == 'DROP TABLE IF EXISTS "t" CASCADE'
    )


def test_the_query_parameters_of_n8n() -> None:
    query = "SELECT * FROM t WHERE a = $1 AND b = '$2' AND c = $3::int"
    found = n8n(
        operation="executeQuery", query=query, options={"queryReplacement": "={{ $json.a }}, plain,{{ $json.c }}"}
    )
    assert found[0] == "SELECT * FROM t WHERE a = :a AND b = :plain AND c = :c::int"
    assert found[1]["a"] == "<start.a>" and found[1]["c"] == "<start.c>"
    as_list = n8n(operation="executeQuery", query="SELECT $1, $2", options={"queryReplacement": "={{ [$json.a, 2] }}"})
    assert len(as_list[1]) == 2
    assert n8n(operation="executeQuery", query="={{ $json.query }}") == ("", {})
