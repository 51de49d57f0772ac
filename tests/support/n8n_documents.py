"""Workflows in the form in which n8n exports them, written for the tests."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
_LANGCHAIN = ("agent", "chainLlm", "chatTrigger", "lmChatOpenAi", "memoryBufferWindow", "toolHttpRequest",
              "outputParserStructured", "textClassifier", "toolWorkflow", "vectorStoreQdrant", "vectorStoreInMemory",
              "toolVectorStore", "toolSerpApi", "documentDefaultDataLoader")  # fmt: skip


def node(name: str, kind: str, version: float = 1, /, raw: Json | None = None, **params: Any) -> Json:
    package = "@n8n/n8n-nodes-langchain" if kind in _LANGCHAIN else "n8n-nodes-base"
    made = {"id": f"id-{name}", "name": name, "type": f"{package}.{kind}", "typeVersion": version}
    return {**made, "position": [0, 0], "parameters": params, **(raw or {})}


def workflow(nodes: list[Json], wires: str, name: str = "flow") -> Json:
    """Wires as `A > B; A.1 > C; A > M:1; Model ai_languageModel Agent`: the output after a dot, the input after a
    colon."""
    connections: Json = {}
    for wire in filter(None, (part.strip() for part in wires.split(";"))):
        if ">" in wire:
            kind, (source, target) = "main", (end.strip() for end in wire.split(">"))
        else:
            source, kind, target = wire.split()
        source, _, output = source.partition(".")
        target, _, input = target.partition(":")
        ways = connections.setdefault(source, {}).setdefault(kind, [])
        while len(ways) <= int(output or 0):
            ways.append([])
        ways[int(output or 0)].append({"node": target, "type": kind, "index": int(input or 0)})
    return {"name": name, "nodes": nodes, "connections": connections, "settings": {}, "active": False}


def fields(**values: Any) -> Json:
    """The parameters of Edit Fields."""
    rows = [{"id": name, "name": name, "type": "string", "value": value} for name, value in values.items()]
    return {"assignments": {"assignments": rows}, "options": {}}


def condition(left: Any, operation: str, right: Any = "", kind: str = "string") -> Json:
    """The parameter `conditions` of If, Filter and Switch."""
    one = {"leftValue": left, "rightValue": right, "operator": {"type": kind, "operation": operation}}
    return {"options": {}, "combinator": "and", "conditions": [one]}
