"""n8n's workflows -> our document.

A node becomes one block, with its name, except for agents: their models, memories, tools and parsers become params.
What else there is comes from lists of items (`n8n_flow`) and from expressions (`n8n_text`). What has no counterpart is
left out or changed with a warning (`import_lossy`); a node of a type without one becomes a block that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import orjson

from compiler.catalog import Catalog
from compiler.diagnostics import Diagnostic
from compiler.imports import Imported, n8n_triggers, stand_in
from compiler.imports.n8n_agents import agent, classifier, extractor, message, summary
from compiler.imports.n8n_files import request, request_of
from compiler.imports.n8n_flow import ITEMS_MAX, Graph, Port, Region, common, exclusive, order, reached
from compiler.imports.n8n_knowledge import is_store, store
from compiler.imports.n8n_nodes import NODES, policy_of, style_of, ways_of
from compiler.imports.n8n_scope import Place
from compiler.imports.n8n_services import connector, email, http, redis, service_of
from compiler.imports.n8n_source import Source
from compiler.imports.n8n_sql import sql
from compiler.imports.n8n_step import Made, Node, Step, Style
from compiler.imports.n8n_text import Item, Loss, Texts, free, prelude
from compiler.imports.sim_services import NOTES_MAX
from compiler.imports.sim_text import number_in
from compiler.references import escape

_AGENTS: Final = frozenset({"agent", "chainLlm", "chainRetrievalQa", "conversationalAgent"})


def detect(document: Mapping[str, Any]) -> bool:
    """Return whether it is a workflow of n8n, by its shape."""
    nodes = document.get("nodes")
    if isinstance(document.get("format"), str) or not isinstance(nodes, list):
        return False
    return isinstance(document.get("connections"), Mapping) and all(
        isinstance(node, Mapping) and isinstance(node.get("type"), str) for node in nodes
    )


def convert(
    document: Mapping[str, Any], *, env_names: Collection[str] | None = None, catalog: Catalog | None = None
) -> Imported:
    """Convert. Without a catalog, services have no connectors. Never raises: parts that cannot be read are left out
    with a warning."""
    return _Import(document, catalog).run()


class _Import:
    def __init__(self, document: Mapping[str, Any], catalog: Catalog | None) -> None:
        self._catalog = catalog
        self.title = str(document.get("name") or "imported").strip()[:200] or "imported"
        self.source = Source(document)
        self.graph = Graph()
        self.ports: dict[str, list[Port]] = {}
        self.files: dict[str, tuple[Region, dict[str, str]]] = {}
        self.regions: dict[str, Region] = {}
        self._out = Imported({})
        self._waiting: dict[str, tuple[Port, Callable[[], str]]] = {}  # by what follows a loop

    def run(self) -> Imported:
        for at, one in enumerate(self.source.notes):
            note = self.graph.add(f"note_{at}", "note", {"text": one.text()}, self.graph.root)
            self.graph.blocks[note]["at"] = [at * 320, -240]  # above the blocks, which the editor places
        edges = [(source, target) for target, wires in self.source.wires.items() for source, _, _ in wires]
        for name in order(list(self.source.nodes), [*edges, *self.source.delayed]):
            self._emit(self.source.nodes[name])
        self.graph.finish()
        for node, loss in self.source.losses:
            self._warn(node, loss, self.source.ids[node.name])
        self._out.document = {
            "format": "weft/1",
            "name": self.title,
            "blocks": self.graph.blocks,
            "edges": self.graph.edges,
        }
        return self._out

    def _warn(self, node: Node, loss: Loss, block: str | None) -> None:
        text = f'{node.kind} "{node.name}": {loss.message}'
        self._out.diagnostics.append(Diagnostic("import_lossy", "warning", node.pointer, text, loss.hint, block))

    def within(self, name: str) -> Region | None:
        """Return the loop in whose body a node is, if it has begun."""
        found = [self.regions[n] for n, body in (*self.source.loops.items(), *self.source.cycles.items())
                 if name in body and n in self.regions]  # fmt: skip
        return max(found, key=lambda one: len(list(one.chain())), default=None)

    # what a node gets

    def _ports(self, name: str, at: int | None = None) -> list[Port]:
        found: list[Port] = []
        if name in self._waiting:
            done, listing = self._waiting.pop(name)
            done.many = done.many or listing()
        for source, output, index in self.source.wires.get(name, ()):
            if at is not None and index != at:
                continue
            ports = self.ports.get(source, ())
            if output < len(ports):
                port = self._left(source, output, name, ports[output])
                if port.block and not any(port is one for one in found):
                    found.append(port)
        return found

    def _left(self, source: str, output: int, name: str, port: Port) -> Port:
        """An output in a cycle, for a node after the cycle: what it was in the last iteration."""
        for entry, members in self.source.cycles.items():
            if source in members and name not in members and entry in self.regions:
                region = self.regions[entry]
                exits = {
                    (s, o) for t, ws in self.source.wires.items() if t not in members for s, o, _ in ws if s in members
                }
                inside = port.region is region
                item = port.item if inside else None
                listing = None if item is not None else self.graph.listing(port, region.parent or region)
                block, handle = region.block, "out"
                if len(exits) > 1:
                    taken = Port(port.block, port.handle, port.region, port.item or Item(port.block), passed=True)
                    when = f"({self.graph.listing(taken, region.parent or region)}).length > 0"
                    cases = [{"id": "taken", "title": "taken", "when": when}]
                    block = self.graph.add(
                        f"{region.block}_exit", "condition", {"cases": cases}, region.parent or region
                    )
                    self.graph.edge(region.block, block)
                    handle = "taken"
                return Port(block, handle, region.parent or region, item, listing, True, port.guard)
        return port

    def _single(self, node: Node, ports: list[Port]) -> tuple[Region, Item | None, list[Port]]:
        """The place of a node that runs for each item."""
        base = self.within(node.name) or self.graph.root
        if not ports:
            return base, None, []
        alike = all(one.region is ports[0].region and one.item is not None for one in ports)
        if len(ports) > 1 and alike and all(exclusive(a, b) for i, a in enumerate(ports) for b in ports[:i]):
            first = ports[0]
            if all(one.item == first.item for one in ports):
                return first.region, first.item, ports
            values = [self.graph.present(one) for one in ports]
            block = self.graph.add(
                f"{self.source.ids[node.name]}_input", "set", {"first": values}, first.region, f"Input of {node.name}"
            )
            for one in ports:
                self.graph.connect(one, block, first.region)
            for value in values:
                mark = value.strip("<>").split(" ")[0].split(".")[0]
                if mark in self.graph.blocks and self.graph.blocks[mark]["type"] == "set":
                    self.graph.edge(mark, block)
            return first.region, Item(block), [Port(block, "out", first.region, Item(block))]
        frame = common([one.region for one in ports] + [base])
        if len(ports) > 1 or (frame is not ports[0].region.framed() and ports[0].region is not frame):
            js = f"[{', '.join(self.graph.listing(one, frame) for one in ports)}].flat()"
            block = self.graph.function(
                f"{self.source.ids[node.name]}_input", f"return {js};", frame, f"Input of {node.name}"
            )
            for one in ports:
                self.graph.connect(one, block, frame)
            ports = [Port(block, "out", frame, None, f"<{block}.result>")]
        port = ports[0]
        if port.item is not None:
            return port.region, port.item, ports
        if node.raw.get("executeOnce") is True:
            return port.region, Item(f"{self.graph.plain(port, node.name).strip('<>')}[0]"), [port]
        region = self.graph.each(port, self._title(port))
        inside = Port(region.block, "body", region, Item(f"{region.block}.item"), guard=port.guard)
        return region, inside.item, [inside]

    def _title(self, port: Port) -> str:
        return str(self.graph.blocks.get(port.block, {}).get("name", port.block)).removeprefix("Items of ")

    def _together(self, node: Node) -> tuple[Region, list[str], list[Port], bool]:
        """The place of a node that gets all items, and by input the list of them."""
        base = self.within(node.name) or self.graph.root
        inputs = max((index for _, _, index in self.source.wires.get(node.name, ())), default=-1) + 1
        groups = [self._ports(node.name, at) for at in range(inputs)]
        ports = [one for group in groups for one in group]
        if not ports:
            return base, [], [], True
        frame = common([one.region for one in ports] + [base])
        single = all(one.item is not None and one.region is frame for one in ports)
        single = single and all(len(group) <= 1 or all(exclusive(a, b) for i, a in enumerate(group) for b in group[:i])
                                for group in groups)  # fmt: skip
        sure = len(ports) == 1
        lists = []
        for group in groups:
            made = [self.graph.listing(one, frame, sure=sure) for one in group]
            lists.append(made[0] if len(made) == 1 else f"[{', '.join(made)}].flat()" if made else "[]")
        return frame, lists, ports, single

    # blocks

    def _emit(self, node: Node) -> None:
        if node.kind == "splitInBatches":
            self._loop(node)
            return
        style, make = self._row(node)
        if style == "all":
            region, lists, ports, single = self._together(node)
            item = next((one.item for one in ports), None) if single and len(ports) == 1 else None
        else:
            region, item, ports = self._single(node, [] if style == "trigger" else self._ports(node.name))
            lists, single = [f"[{item.js()}]" if item else "[{}]"], True
        if node.name in self.source.cycles:
            region, item, ports = self._cycle(node, region, item, ports)
        id = free(self.source.ids[node.name], self.graph.blocks.__contains__, "_")
        self.source.ids[node.name] = id
        texts = Texts(Place(self, node, region, item, lists), f"{id}_values.result")
        step = Step(node, id, self.graph, region, texts, item, lists, single)
        self.graph.blocks[id] = {}  # its place in the order
        made = self._stand_in(step) if make is None else make(step)
        del self.graph.blocks[id]
        if made is None:
            made = self._stand_in(step)
        self._place(node, step, made, ports, style)

    def _row(self, node: Node) -> tuple[Style, Any]:
        if node.kind in NODES:
            style, make = NODES[node.kind]
            return style_of(node, style), make
        catalog = self._catalog
        others: dict[str, Any] = {
            "httpRequest": http, "emailSend": email, "postgres": sql, "mySql": sql,
            "redis": redis,
            "openAiMessage": lambda step: message(step, catalog) or self._service(step),
            "openAi": lambda step: message(step, catalog),
            "textClassifier": classifier, "sentimentAnalysis": classifier, "informationExtractor": extractor,
            "chainSummarization": summary,
        }  # fmt: skip
        if node.kind in others:
            return "each", others[node.kind]
        if node.kind in _AGENTS:
            return "each", lambda step: agent(step, catalog)
        if node.kind.endswith("Trigger") or node.kind == "emailReadImap":
            return "trigger", n8n_triggers.service
        return "each", store if is_store(node.kind) else self._service

    def _service(self, step: Step) -> Made | None:
        row = request_of(step)
        if row is not None:
            return request(step, row)
        return connector(step, self._catalog) if service_of(step.node.kind) else None

    def _stand_in(self, step: Step) -> Made:
        title = step.node.kind
        found = service_of(title)
        advice = "Replace it with an http block that calls the service, or a connector made of its OpenAPI description."
        if found is not None:
            advice = f"Replace it with the block connector.{found[0]}, or an http block."
        step.lose("It is not imported. A block that fails is in its place.", advice)
        return Made("function", stand_in(f'The {title} node "{step.node.name}"', "n8n", advice), ".result")

    def _place(self, node: Node, step: Step, made: Made, ports: list[Port], style: Style) -> None:
        graph, region, texts = self.graph, step.region, step.texts
        params = made.params
        for case in params.get("cases", ()):
            if prelude(case.get("when", "")):  # a condition has no helpers
                texts.hoisted[f"is_{case['id']}"] = case["when"]
                case["when"] = f"<{step.id}_values.result.is_{case['id']}>"
        if made.type == "function" and params.get("language") != "python":
            params = {**params, "code": prelude(params["code"]) + params["code"]}
        sources = list(ports)
        values: list[str] = []
        if texts.hoisted:
            js = ",\n".join(f"  {key}: {js}" for key, js in texts.hoisted.items())
            title = f"Values of {node.name}"
            values = [graph.function(f"{step.id}_values", f"return {{\n{js}\n}};", region, title)]
        for block in [*values, *step.before]:
            for port in sources:
                graph.connect(port, block, region)
            sources = [Port(block, "out", region)]
        id = graph.add(step.id, made.type, params, region, self.source.titles.get(node.name, node.name))
        block_doc = graph.blocks[id]
        policy = {**policy_of(node), **made.policy}
        if policy and made.type not in ("condition", "response") and style != "trigger":
            block_doc["policy"] = policy
        notes = [str(node.raw["notes"])] if node.raw.get("notes") else []
        if "not imported from n8n" in str(params.get("code", "")) and node.params:
            notes.append(orjson.dumps(node.params, option=orjson.OPT_INDENT_2).decode())
        if notes:
            block_doc["description"] = "\n".join(notes)[:NOTES_MAX]
        if node.raw.get("disabled") is True:
            self._skip(node, id, step, ports)
            return
        for port in sources:
            graph.connect(port, id, region)
        self._out.pointers[f"/blocks/{escape(id)}"] = node.pointer
        for loss in texts.losses:
            self._warn(node, loss, id)
        guard = frozenset.intersection(*(port.guard for port in ports)) if ports else frozenset()
        out = self._item(id, step, made)
        many = made.many.replace("@", id) if made.many is not None else None
        self.files[node.name] = (region, {name: f"{id}{place}" for name, place in made.files.items()})
        ways = ways_of(node, made)
        ported: list[Port] = []
        for i, way in enumerate(ways):
            here = guard | {(id, i)} if len(ways) > 1 or made.type == "condition" else guard
            passed = made.out is None and many is None
            if way == "error" and i >= len(made.handles):
                item = Item(id, ((("error",), "error.message"),))
                ported.append(Port(id, way, region, item, None, True, here))
            else:
                ported.append(Port(id if way else "", way, region, None if many else out, many, passed, here))
        if made.ends and self.source.after(node.name):
            step_ports = [Port(p.block, p.handle, p.region, p.item, p.many, p.passed, p.guard) for p in ports]
            ported = step_ports[:1] or ported
            self._warn(node, Loss("What follows it runs beside it; the response ends the run.",
                                  "Put the response at the end, or start a workflow for the rest."), id)  # fmt: skip
            self.graph.later.append(lambda: self._respond_last(id, node.name))
        self.ports[node.name] = ported

    def _respond_last(self, id: str, name: str) -> None:
        """The response ends the run, so it waits for what follows it in n8n."""
        parent = self.graph.blocks[id].get("parent")
        for later in reached(self.source.after(name), self.source.after):
            block = self.source.ids[later]
            while block in self.graph.blocks and self.graph.blocks[block].get("parent") != parent:
                block = str(self.graph.blocks[block].get("parent") or "")
            followed = any(edge["source"] == block for edge in self.graph.edges)
            if block in self.graph.blocks and not followed and block != id:
                cases = self.graph.blocks[block].get("params", {}).get("cases")
                for handle in [case["id"] for case in cases] if cases else ["out"]:
                    self.graph.edge(block, id, handle)

    def _skip(self, node: Node, id: str, step: Step, ports: list[Port]) -> None:
        """A node that is off passes its items on."""
        self.graph.blocks[id]["enabled"] = False
        self.ports[node.name] = [
            Port(p.block, p.handle, p.region, p.item, p.many, p.passed, p.guard) for p in ports[:1]
        ]

    def _item(self, id: str, step: Step, made: Made) -> Item | None:
        if made.out is None:
            return step.item or Item(id)
        rest = step.item.ref if made.keeps and step.item is not None and not step.item.fields else ""
        return Item(f"{id}{made.out}", tuple(made.fields), rest)

    # loops

    def _loop(self, node: Node) -> None:
        """Loop Over Items: one iteration for each item, or for each batch."""
        frame, lists, ports, _ = self._together(node)
        id = free(self.source.ids[node.name], self.graph.blocks.__contains__, "_")
        self.source.ids[node.name] = id
        texts = Texts(Place(self, node, frame, None, lists), f"{id}_values.result")
        size = node.params.get("batchSize", 1 if node.version >= 3 else 10)
        js = lists[0] if lists else "[]"
        number = number_in(size)
        if number != 1:
            n = texts.script(size)
            js = f"{js}.reduce((all, one, i) => (i % {n} ? all.at(-1).push(one) : all.push([one]), all), [])"
        port = Port(ports[0].block, ports[0].handle, ports[0].region, None, js) if ports else None
        if not (js.startswith("<") and js.count("<") == 1 and js.endswith(">")):
            made = self.graph.function(f"{id}_items", f"return {js};", frame, f"Items of {node.name}")
            for one in ports:
                self.graph.connect(one, made, frame)
            js, port = f"<{made}.result>", Port(made, "out", frame)
        params = {"mode": "each", "items": js, "max": ITEMS_MAX, "results": "value"}
        id = self.graph.add(id, "loop", params, frame, node.name)
        for one in [port] if port is not None else []:
            self.graph.connect(one, id, frame)
        region = self.regions[node.name] = self.graph.region(id, frame, frame=True)
        self._out.pointers[f"/blocks/{escape(id)}"] = node.pointer
        if not self.source.loops.get(node.name):
            self.graph.edge(id, self.graph.add(f"{id}_item", "set", {"value": f"<{id}.item>"}, region), "body")
        item = Item(f"{id}.item") if number == 1 else None
        body = Port(id, "body", region, item, None if item else f"<{id}.item>")
        done = Port(id, "out", frame, None, "")
        self.ports[node.name] = [done, body] if self.source.done_of(node) == 0 else [body, done]

        def finished() -> str:
            back = [
                self.ports[s][o] for s, o in self.source.returns.get(node.name, ()) if o < len(self.ports.get(s, ()))
            ]
            made = [self.graph.listing(one, frame) for one in back if one.block]
            return made[0] if len(made) == 1 else f"[{', '.join(made)}].flat()" if made else js

        for target in self.source.after(node.name, self.source.done_of(node)):
            self._waiting[target] = (done, finished)

    def _cycle(
        self, node: Node, region: Region, item: Item | None, ports: list[Port]
    ) -> tuple[Region, Item | None, list[Port]]:
        """Any other cycle: it repeats while an output that leads back is taken."""
        returns = self.source.returns[node.name]
        params: dict[str, Any] = {"mode": "do_while", "condition": "false", "max": 1000, "results": "value"}
        id = self.graph.add(f"repeat_{self.source.ids[node.name]}", "loop", params, region, f"Repeat {node.name}")
        for port in ports:
            self.graph.connect(port, id, region)
        inner = self.regions[node.name] = self.graph.region(id, region, frame=True)
        before: dict[str, Any] = {"first": [item.value() if item else {}]}
        block = self.graph.add(f"{id}_input", "set", before, inner, f"Input of {node.name}")
        self.graph.edge(id, block, "body")

        def later() -> None:
            tests: list[str] = []
            for source, output in returns:
                ports = self.ports.get(source, ())
                if output < len(ports) and ports[output].block:
                    port = ports[output]
                    tests.append(f"({self.graph.listing(port, inner)}).length > 0")
                    if port.region is inner and port.item is not None and (ref := port.item.path(())) is not None:
                        before["first"].insert(0, f"<{ref} ?? null>")
            params["condition"] = " || ".join(tests) or "false"

        self.graph.later.append(later)
        return inner, Item(block), [Port(block, "out", inner, Item(block))]
