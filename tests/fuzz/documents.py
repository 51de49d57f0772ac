"""Documents that compile, made at random: one trigger or several, a chain of blocks behind each, nested loops and
parallels, references backwards, policies, cleanups, and a tail that several triggers lead to."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.fuzz.params import PARAMS, SCHEMAS, Document, Draw, Scene, pick, texts

TRIGGERS = ("start", "schedule", "webhook", "form_trigger", "chat_trigger")
CONTAINERS = ("loop", "parallel")
LEAVES = tuple(sorted(PARAMS.keys() - {*TRIGGERS, *CONTAINERS, "note", "break"}))
ENDING = ("response", "continue_as_new")  # which end the run: not in a cleanup
CACHED = ("function", "http")  # whose outputs may stand for new ones; http only when it reads
DEPTH_MAX = 3
BLOCKS_MAX = 25
GROUP = "g"

End = tuple[str, str | None]  # a block and the handle the next one hangs on


@st.composite
def documents(draw: Draw) -> Document:
    scene = Scene(draw, ())
    builder = _Builder(draw)
    kinds = ["start"] if scene.chance(7) else draw(st.lists(st.sampled_from(TRIGGERS), min_size=1, max_size=4))
    reached: list[str] = []
    ends: list[End] = []
    for kind in kinds:
        heads, left = builder.branch(kind)
        reached += heads
        ends += left
    if len(kinds) > 1 and ends:
        builder.chain(None, reached, (), ends)
    if scene.chance(3):
        builder.cleanup(None, [], (), [id for id, block in builder.blocks.items() if block["type"] in TRIGGERS])
    for _ in range(draw(st.integers(0, 1))):
        params, _ = PARAMS["note"](scene)
        builder.add("note", None, params)
    document: Document = {"format": "weft/1", "name": draw(texts) or "fuzz", "blocks": builder.blocks}
    document |= {"edges": builder.edges, "variables": {"seen": 0, "list": [], "box": {}}}
    if scene.chance(6):
        document["settings"] = settings(scene)
    if builder.grouped:
        document.setdefault("settings", {}).setdefault("groups", {})[GROUP] = draw(st.integers(1, 3))
    if scene.chance(6):
        document["input"] = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
    return document | scene.some(description=("for people",), notes=([],), version=(1,), id=("a-1",), **{"x-own": (1,)})


def settings(s: Scene) -> Document:
    return s.some(
        max_concurrency=(1, 3, 50),
        timeout_s=(0.001, 5, 86_400),
        groups=({}, {"other": 1}),
        on_failure=("drain", "cancel"),
        durability=("strict", "ahead"),
        pool=("default",),  # of another one nothing would be executed here
        priority=(-10, 10),
        fair=("<input.n>", 'of <input.n ?? "none">'),
        limits=([{"key": "one", "at_most": 1}], [{"key": "n <input.n>", "at_most": 5, "of": "run"}], []),
        rates=([{"key": "n <input.n>", "per_s": 1000.0}], []),
        max_executions=(5, 10_000),
        cleanup_timeout_s=(0.001, 300),
        alerts=(
            {},
            {"email": ["ops@example.org"], "waiting_s": 60},
            {"email": [], "webhook": "http://127.0.0.1:9/alerts"},
        ),
        error_workflow=("fuzz", "no such workflow"),
        retention=({"days": 30, "keep": 100}, {"keep": 1}, {"days": None}, {}),
    )


class _Builder:
    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.blocks: dict[str, Document] = {}
        self.edges: list[Document] = []
        self.grouped = False
        self._cleaning = False

    def branch(self, trigger: str) -> tuple[list[str], list[End]]:
        """A trigger and what follows it; what may be referred to behind it, and its loose ends."""
        scene = Scene(self.draw, ())
        block_id = trigger if trigger not in self.blocks else f"{trigger}{len(self.blocks)}"
        params, _ = PARAMS[trigger](scene)
        block = self.blocks[block_id] = {"type": trigger} | ({"params": params} if params else {})
        block |= scene.some(name=("Los geht's", "begin"), assign=("$.box",), at=([0, 0],))
        before = [block_id]
        return before, self.chain(None, before, (), [(block_id, None)])

    def add(self, kind: str, parent: str | None, params: Document) -> tuple[str, Document]:
        block_id = f"{kind}{len(self.blocks)}"
        block: Document = {"type": kind, "params": params} | ({"parent": parent} if parent is not None else {})
        self.blocks[block_id] = block
        return block_id, block

    def cleanup(self, parent: str | None, before: list[str], around: tuple[str, ...], owners: list[str]) -> None:
        """What the exits `finally` of `owners` lead to."""
        was, self._cleaning = self._cleaning, True
        self.chain(parent, before or ["input"], around, [(owner, "finally") for owner in owners])
        self._cleaning = was

    def chain(self, parent: str | None, before: list[str], around: tuple[str, ...], ends: list[End]) -> list[End]:
        """One block after another. `ends`: what the first one hangs on; `before`: what references may begin with, to
        which this adds; `around`: the kinds of containers, innermost last. Returns the loose ends."""
        for _ in range(self.draw(st.integers(1, 3))):
            scene = Scene(self.draw, tuple(before), around)
            kind = self._kind(around)
            params, handles = PARAMS[kind](scene)
            block_id, block = self.add(kind, parent, params)
            for source, handle in ends:
                edge = {"source": source, "target": block_id} | ({"handle": handle} if handle else {})
                self.edges.append(
                    edge | (scene.some(id=("e",), label=("then",), at=([1, 2],)) if scene.chance(2) else {})
                )
            self._finish(kind, block, scene)
            if kind in CONTAINERS:
                self.chain(block_id, list(before), (*around, kind), [(block_id, "body")])
                if scene.chance(3):
                    self.cleanup(block_id, list(before), around, [block_id])
                before.append(f"{block_id}.results")
            else:
                before.append(block_id)
            if scene.chance(4):
                handles = [*handles, "error"]
            ends = [(block_id, handle) for handle in handles]
            if not ends:
                break
        return ends

    def _kind(self, around: tuple[str, ...]) -> str:
        kinds = [kind for kind in LEAVES if kind not in ENDING or not self._cleaning]
        if len(around) < DEPTH_MAX and len(self.blocks) < BLOCKS_MAX:
            kinds += [*CONTAINERS, *CONTAINERS]
        if "loop" in around:
            kinds += ["break", "break"]
        return str(pick(self.draw, kinds))

    def _finish(self, kind: str, block: Document, scene: Scene) -> None:
        """What every block may have."""
        plain = scene.chance(6)
        if plain:
            return
        block |= scene.some(
            name=(f"Name of {len(self.blocks)}", "Größe v1.2", "same"),
            assign=("$.box.x", "$.list[0]", '$["odd name"]', "$.seen"),
            at=([1, 2],),
            size=([3, 4],),
            description=("d",),
            color=("red",),
            collapsed=(True,),
            source=({"file": "flow.py", "text": "x < 1", "first_line": 1, "line": 1, "end_line": 1, "calls": []},),
        )
        if kind not in CONTAINERS:
            block |= scene.some(output_schema=(*SCHEMAS, None))
        if kind == "set" and scene.chance(1):
            block["pin"] = {"output": scene.value()}
        if not scene.around:  # an empty container is an error
            block |= {"enabled": False} if scene.chance(1) else scene.some(enabled=(True,))
        if scene.chance(9 if kind in CACHED else 6):
            block["policy"] = self._policy(kind, block["params"], scene)
            if kind in ("python", "function"):
                self._runner(block, scene)

    def _runner(self, block: Document, scene: Scene) -> None:
        """In other processes only where nothing runs: there is no cluster here, and no time for children."""
        elsewhere = not scene.around and scene.chance(6)
        block["policy"]["runner"] = scene.pick("process", "dask") if elsewhere else "inline"
        if elsewhere:
            block["enabled"] = False

    def _policy(self, kind: str, params: Document, scene: Scene) -> Document:
        retry = scene.some(
            max_attempts=(1, 2, None),
            backoff=("fixed", "linear", "exponential"),
            initial_ms=(0, 10),
            factor=(1, 2.5),
            max_ms=(0, 1000),
            jitter=(0, 0.25),
        )
        policy = scene.some(
            retry=(retry, retry, None),
            skip_if=(scene.expression(), None),
            timeout_s=(0.5, 60),
            heartbeat_timeout_ms=(100, 60_000),
            on_error=("fail", "continue"),
            on_lost=("retry", "ask", "fail"),
            limit=({"key": "one", "at_most": 1}, {"key": f"n <{scene.head()}>", "at_most": 5}),
        )
        if scene.chance(4):
            policy["group"] = GROUP
            self.grouped = True
        if kind in CACHED and params.get("method", "GET") in ("GET", "HEAD"):
            policy["cache"] = {"scope": scene.pick("run", "workflow", "global")} | scene.some(
                key=(scene.expression(), f"[<{scene.head()}>, 1]"), version=("v1", 2, 0.5), ttl_s=(0.001, 60, None)
            )
        return policy


def triggers(document: Any) -> list[str]:
    """Ids of the blocks that can start a run."""
    blocks = document.get("blocks") if isinstance(document, dict) else None
    found = blocks.items() if isinstance(blocks, dict) else ()
    return [id for id, block in found if isinstance(block, dict) and block.get("type") in TRIGGERS]
