"""Sim's workflows -> our document. Reads the serialized form (`blocks` a list, `connections`) and the export file
(`state`).

Ids are kept. What has no counterpart is left out or changed with a warning (`import_lossy`):

- edges that cross a container's border are dropped, as Sim drops them;
- an edge without a handle from a condition or router, which fires on every way there, becomes one edge per way;
- a container's results hold the outputs of all its blocks (`results: all`), as in Sim; our own default is the end
blocks;
- `{{NAME}}` becomes `${NAME}` when NAME is a known environment name (any UPPER_CASE one when those are not known);
- schedules and webhooks stay triggers of their kind, and events of GitHub become a webhook; every other trigger becomes
  a `start` block;
- blocks of services become blocks of our connectors where an operation does the same; their accounts are not imported;
- code that is neither JavaScript nor Python, and settings without a counterpart are lost; a block of a type that the
  catalog lacks becomes one that fails: a finding for each block has the next step.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from compiler.catalog import Catalog
from compiler.diagnostics import Diagnostic
from compiler.imports import Imported
from compiler.imports.sim_blocks import is_known, loop_params, notes_of, parallel_params, policy_of, translate
from compiler.imports.sim_services import connector, foreign, is_ours, service_of, settings_of, title_of
from compiler.imports.sim_sql import only_reads
from compiler.imports.sim_text import WEBHOOKS, Loss, Texts, mapping, parse_json, typed_value
from compiler.references import escape

_HANDLES = {
    "source": "out",
    "loop-start-source": "body",
    "parallel-start-source": "body",
    "loop-end-source": "out",
    "parallel-end-source": "out",
}
_STARTS = ("start", "starter", "start_trigger", "input_trigger", "manual_trigger", "api_trigger", "chat_trigger")
_EVENTS = {"github": "github_webhook", "rss": "rss_poller", "imap": "imap_poller"}
_KEPT = ("schedule", "rss_poller", "imap_poller", *WEBHOOKS)  # triggers with a counterpart
_TRIGGERS = frozenset([*_STARTS, *_KEPT, "webhook_request"])
# Blocks whose unlabelled edges stand for all exits.
_BRANCHING = ("condition", "router", "router_v2")


class SimBlock(Struct):
    """A block of either form. `pointer` leads to it in the source."""

    id: str
    type: str
    name: str
    params: dict[str, Any]
    pointer: str
    parent: str | None = None
    enabled: bool = True
    trigger: bool = False
    at: Any = None
    size: Any = None
    retry: Any = None


def detect(document: Mapping[str, Any]) -> bool:
    """Return whether it is a workflow of Sim, by its shape."""
    if isinstance(document.get("format"), str):
        return False
    state = document.get("state")
    if isinstance(state, Mapping) and isinstance(state.get("blocks"), Mapping):
        return True
    blocks = document.get("blocks")
    if isinstance(blocks, list):
        return "connections" in document or "loops" in document
    found = blocks.values() if isinstance(blocks, Mapping) else ()
    return any(isinstance(block, Mapping) and "subBlocks" in block for block in found)


def convert(
    document: Mapping[str, Any],
    *,
    env_names: Collection[str] | None = None,
    catalog: Catalog | None = None,
    variables: Any = None,
    name: str | None = None,
) -> Imported:
    """Convert. Blocks of types that `catalog` lacks are replaced; without one they stay. `variables` (Sim's {id: {name,
    type, value}}, which the serialized form does not hold) and `name` override those of the document. Never raises:
    parts that cannot be read are left out with a warning."""
    return _Import(document, env_names, variables, name, catalog).run()


class _Import:
    def __init__(
        self,
        document: Mapping[str, Any],
        env_names: Collection[str] | None,
        variables: Any,
        name: str | None,
        catalog: Catalog | None,
    ) -> None:
        state = document.get("state")
        self._base = "/state" if isinstance(state, Mapping) else ""
        self._source: Mapping[str, Any] = state if isinstance(state, Mapping) else document
        self._edge_field = "connections" if "connections" in self._source else "edges"
        connections = self._source.get(self._edge_field)
        self._connections: list[Any] = connections if isinstance(connections, list) else []
        metadata = self._source.get("metadata")
        titles = [name, *(m.get("name") for m in (metadata, document) if isinstance(m, Mapping))]
        self._name = next((title for title in titles if isinstance(title, str) and title), "imported")
        self._variables = variables if variables is not None else self._source.get("variables")
        self._loops = mapping(self._source.get("loops"))
        self._parallels = mapping(self._source.get("parallels"))
        self._env_names = env_names
        self._catalog = catalog
        self._out = Imported({})
        self._blocks: dict[str, SimBlock] = {}
        self._foreign: frozenset[str] = frozenset()

    def run(self) -> Imported:
        for block in self._read_blocks():
            self._blocks[block.id] = block
        self._place()
        self._foreign = frozenset(block.id for block in self._blocks.values() if self._is_foreign(block))
        texts = Texts(
            {b.id: (_kind_of(b), b.name) for b in self._blocks.values()}, self._env_names, self._foreign, self._catalog
        )
        edges, before = self._edges()
        blocks: dict[str, Any] = {}
        for block in self._blocks.values():
            self._out.pointers[f"/blocks/{escape(block.id)}"] = block.pointer
            blocks[block.id] = self._block(block, texts, before.get(block.id))
        self._out.document = {
            "format": "weft/1",
            "name": self._name,
            "variables": self._read_variables(),
            "blocks": blocks,
            "edges": edges,
        }
        return self._out

    def _warn(self, pointer: str, message: str, block: str | None = None, hint: str = "") -> None:
        self._out.diagnostics.append(Diagnostic("import_lossy", "warning", pointer, message, hint, block))

    def _lost(self, block: SimBlock, loss: Loss) -> None:
        self._warn(block.pointer, f'{title_of(block.type)} "{block.name}": {loss.message}', block.id, loss.hint)

    # reading

    def _read_blocks(self) -> list[SimBlock]:
        raw_blocks = self._source.get("blocks")
        blocks: list[SimBlock] = []
        if isinstance(raw_blocks, list):
            pairs = [(f"/blocks/{i}", raw) for i, raw in enumerate(raw_blocks)]
        else:
            pairs = [(f"{self._base}/blocks/{escape(str(k))}", raw) for k, raw in mapping(raw_blocks).items()]
        for pointer, raw in pairs:
            block = self._read_block(pointer, raw) if isinstance(raw, Mapping) else None
            if block is None:
                self._warn(pointer, "A block that cannot be read is left out.")
            else:
                blocks.append(block)
        return blocks

    def _read_block(self, pointer: str, raw: Mapping[str, Any]) -> SimBlock | None:
        metadata, config = mapping(raw.get("metadata")), mapping(raw.get("config"))
        data = mapping(raw.get("data"))
        kind = metadata.get("id") or raw.get("type")
        block_id = raw.get("id") or pointer.rsplit("/", 1)[1].replace("~1", "/").replace("~0", "~")
        if not isinstance(kind, str) or not isinstance(block_id, str):
            return None
        if "subBlocks" in raw:
            params = {k: v.get("value") for k, v in mapping(raw["subBlocks"]).items() if isinstance(v, Mapping)}
            params = {k: v for k, v in params.items() if v is not None}
        else:
            params = dict(mapping(config.get("params")))
        if kind in ("loop", "parallel"):
            params = {**data, **params}
        name = metadata.get("name") or raw.get("name")
        position, parent = mapping(raw.get("position")), data.get("parentId")
        trigger = (
            kind in _TRIGGERS
            or metadata.get("category") == "triggers"
            or raw.get("triggerMode") is True
            or params.get("triggerMode") is True
        )
        if trigger:
            kind = _EVENTS.get(service_of(kind), kind)
        size = [data["width"], data["height"]] if "width" in data and "height" in data else None
        return SimBlock(
            id=block_id,
            type=kind,
            name=name if isinstance(name, str) and name else block_id,
            params=params,
            pointer=pointer,
            parent=parent if isinstance(parent, str) else None,
            enabled=raw.get("enabled") is not False,
            trigger=trigger and kind not in ("loop", "parallel"),
            at=[position["x"], position["y"]] if "x" in position and "y" in position else None,
            size=size,
            retry=raw.get("retry"),
        )

    def _is_foreign(self, block: SimBlock) -> bool:
        counterpart = block.trigger or block.type in ("loop", "parallel") or is_known(block.type)
        if self._catalog is None or counterpart:
            return False
        ours = is_ours(block.type, block.params)
        return not ours if ours is not None else self._catalog.get(block.type) is None

    def _place(self) -> None:
        """Parents by the node lists of loops and parallels; the export's own `parentId` comes first."""
        for containers in (self._loops, self._parallels):
            for container, config in containers.items():
                nodes = config.get("nodes") if isinstance(config, Mapping) else None
                for node in nodes if isinstance(nodes, list) else ():
                    block = self._blocks.get(node) if isinstance(node, str) else None
                    if block is not None and block.parent is None and container in self._blocks and node != container:
                        block.parent = container
        for block in self._blocks.values():
            if block.parent is not None and block.parent not in self._blocks:
                self._lost(block, Loss("Its container is missing.", "Drag it into the container again."))
                block.parent = None

    def _read_variables(self) -> dict[str, Any]:
        declared = self._variables
        items = list(declared.values()) if isinstance(declared, Mapping) else declared
        variables: dict[str, Any] = {}
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Mapping) and isinstance(item.get("name"), str):
                variables[item["name"]] = typed_value(str(item.get("type", "")), item.get("value"))
        return variables

    # edges

    def _edges(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Our edges, and by block the source of its first edge from a sibling."""
        edges: list[dict[str, Any]] = []
        before: dict[str, str] = {}
        for i, raw in enumerate(self._connections):
            pointer = f"{self._base}/{self._edge_field}/{i}"
            source = self._find(raw, "source")
            target = self._find(raw, "target")
            if source is None or target is None:
                self._warn(pointer, "A connection to a missing block is left out.")
                continue
            if "note" in (source.type, target.type):
                continue
            handle = raw.get("sourceHandle")
            ways = self._ways(source, target, handle if isinstance(handle, str) else "")
            if not self._fits(source, target, ways):
                message = f'The connection from "{source.name}" to "{target.name}" crosses a container and is left out.'
                self._warn(pointer, message, source.id, "Connect the container instead.")
                continue
            if target.trigger:
                self._warn(pointer, f'The connection to the trigger "{target.name}" is left out.', target.id)
                continue
            if ways != ["body"]:
                before.setdefault(target.id, source.id)
            for way in ways:
                self._out.pointers[f"/edges/{len(edges)}"] = pointer
                edge = {"source": source.id, "target": target.id}
                edges.append(edge if way == "out" else {**edge, "handle": way})
        edges += self._missing_body_edges(edges)
        return edges, before

    def _find(self, edge: Any, end: str) -> SimBlock | None:
        block_id = edge.get(end) if isinstance(edge, Mapping) else None
        return self._blocks.get(block_id) if isinstance(block_id, str) else None

    def _ways(self, source: SimBlock, target: SimBlock, handle: str) -> list[str]:
        if handle == "error":
            return ["error"]
        if source.id in self._foreign:
            return ["out"]
        if source.type == "router":  # its edges carry no handle: it chooses by target
            return [target.id]
        for prefix in ("condition-", "router-"):
            if handle.startswith(prefix):
                return [handle.removeprefix(prefix)]
        # it returns its findings and continues in any case
        if source.type == "guardrails" and handle in ("", "source"):
            return ["pass", "fail"]
        if source.type in _BRANCHING and handle in ("", "source"):
            cases = parse_json(source.params.get("conditions" if source.type == "condition" else "routes"))
            ids = [case.get("id") for case in cases if isinstance(case, Mapping)] if isinstance(cases, list) else []
            return [case for case in ids if isinstance(case, str)]
        return [_HANDLES.get(handle, handle or "out")]

    def _fits(self, source: SimBlock, target: SimBlock, ways: list[str]) -> bool:
        if ways == ["body"]:
            return target.parent == source.id
        return target.parent == source.parent

    def _missing_body_edges(self, edges: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return body edges for containers without any: Sim begins with the blocks that follow no other."""
        wired = {edge["source"] for edge in edges if edge.get("handle") == "body"}
        followers = {edge["target"] for edge in edges}
        return [
            {"source": block.parent, "target": block.id, "handle": "body"}
            for block in self._blocks.values()
            if block.parent is not None and block.parent not in wired and block.id not in followers
        ]

    # blocks

    def _block(self, block: SimBlock, texts: Texts, before: str | None) -> dict[str, Any]:
        kind, params = block.type, block.params
        if kind == "loop":
            params = loop_params({**params, **mapping(self._loops.get(block.id))}, texts)
        elif kind == "parallel":
            params = parallel_params({**params, **mapping(self._parallels.get(block.id))}, texts)
        else:
            if block.trigger and kind not in (*_STARTS, *_KEPT):
                hint = "Start the workflow through the API, or use a schedule or a webhook."
                self._lost(block, Loss("This trigger becomes a start block.", hint))
                params = {"inputFormat": params.get("inputFormat")}
            as_start = block.trigger and kind not in _KEPT
            takes = block.id in self._foreign or is_ours(kind, params)
            taken = connector(kind, params, texts, self._catalog) if takes else None
            if taken is not None:
                kind, params, losses = taken
            elif block.id in self._foreign:
                kind, params, losses = foreign(kind, block.name)
            else:
                kind, params, losses = translate("start_trigger" if as_start else kind, block.name, params, texts)
            for loss in losses:
                self._lost(block, loss)
            if block.type == "router":
                params["routes"] = self._targets(block)
            elif block.type == "condition":
                # Sim's condition puts out what its source put out, too.
                params["carry"] = f"<{before} ?? {{}}>" if before is not None else {}
        out: dict[str, Any] = {"type": kind, "name": block.name}
        if block.parent is not None:
            out["parent"] = block.parent
        for key, value in (("at", block.at), ("size", block.size)):
            if value is not None:
                out[key] = value
        if params:
            out["params"] = params
        if not block.enabled:
            out["enabled"] = False
        retry = mapping(block.retry)
        if retry.get("enabled") is True:
            out["policy"] = {"retry": _retry(retry)}
        elif policy := policy_of(block.type, block.params):
            out["policy"] = policy
        notes = settings_of if block.id in self._foreign and kind == "function" else notes_of
        if kept := notes(block.type, block.params):
            out["description"] = kept
        return out

    def _targets(self, router: SimBlock) -> list[dict[str, Any]]:
        targets: dict[str, None] = {}
        for raw in self._connections:
            if isinstance(raw, Mapping) and raw.get("source") == router.id and raw.get("sourceHandle") != "error":
                block = self._find(raw, "target")
                if block is not None and block.parent == router.parent:
                    targets[block.id] = None
        return [{"id": target, "title": self._blocks[target].name} for target in targets]


def _kind_of(block: SimBlock) -> str:
    if service_of(block.type) in ("postgresql", "mysql"):
        return "sql_reads" if only_reads(block.params) else "sql_changes"
    return block.type


def _retry(retry: Mapping[str, Any]) -> dict[str, Any]:
    """Sim waits the same time between tries."""
    tries, pause = retry.get("maxTries"), retry.get("waitBetweenTriesMs")
    return {
        "max_attempts": min(100, max(1, tries)) if isinstance(tries, int) else 3,
        "backoff": "fixed",
        "initial_ms": max(0, round(pause)) if isinstance(pause, int | float) else 1000,
        "jitter": 0,
    }
