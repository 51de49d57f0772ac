"""Workflows, runs and the model of the pictures in the documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.browser.editor import document
from tests.browser.test_agent import FIND_PARAMS, REFUND_PARAMS, slow
from tests.browser.test_agent_sheet import NUMBER, tool

SHOP = "You answer customers of Tidewater."
THOUGHT = (
    "Parcel 1042 left Leipzig on Monday and was due yesterday. It is late by one day, so I will look up whether"
    " express was promised, and offer to pay the shipping back."
)


DESK = "You refund late orders of Tidewater. Look it up first. Refund the whole order."
REFUNDED: list[dict[str, Any]] = [
    {
        "when": {"system": "You refund late", "tool": ""},
        "text": "I look up order 1042 first.",
        "calls": [{"name": "find_order", "arguments": {"number": "1042"}}],
    },
    {
        "when": {"system": "Refund the shipping", "tool": "find_order"},
        "text": "It is a day late. Only its shipping is paid back.",
        "calls": [{"name": "refund", "arguments": {"number": "1042", "amount": 20}}],
    },
    {
        "when": {"system": "Refund the whole", "tool": "find_order"},
        "text": "It is a day late. All of it is paid back.",
        "calls": [{"name": "refund", "arguments": {"number": "1042", "amount": 84}}],
    },
    {
        "when": {"system": "Refund the shipping", "tool": "refund"},
        "output": {
            "refund": 20,
            "answer": "I am sorry. Your parcel is a day late, so the 20 EUR of shipping go back to you.",
        },
    },
    {
        "when": {"system": "Refund the whole", "tool": "refund"},
        "output": {"refund": 84, "answer": "I am sorry. Your 84 EUR are on the way back to you."},
    },
]


def script(folder: Path) -> Path:
    """The script of `slow`, and before it two agents of Tidewater: one is long in its second turn, one refunds."""
    path = slow(folder)
    found = json.loads(path.read_bytes())
    usage = {"input_tokens": 320, "output_tokens": 54}
    found["rules"][:0] = [{**rule, "usage": usage} for rule in REFUNDED] + [
        {
            "when": {"system": "Tidewater", "offers": "find_order", "round": 0},
            "text": "I look up order 1042 first.",
            "calls": [{"name": "find_order", "arguments": {"number": "1042"}}],
            "usage": {"input_tokens": 612, "output_tokens": 38},
        },
        {
            "when": {"system": "Tidewater", "tool": "find_order"},
            "text": THOUGHT,
            "usage": {"input_tokens": 672, "output_tokens": 174},
            "pause_ms": 900,
        },
    ]
    path.write_text(json.dumps(found))
    return path


CHAT: dict[str, Any] = {
    "format": "weft/1",
    "name": "tea-shop",
    "description": "Answers customers, asks before it pays",
    "blocks": {
        "chat": {"type": "chat_trigger", "name": "Chat", "at": [0, 0], "params": {"title": "Tidewater support"}},
        "fee": {
            "type": "condition",
            "name": "Asks for money?",
            "at": [272, 0],
            "params": {"cases": [{"id": "yes", "when": '<chat.message>.includes("fee")'}, {"id": "no"}]},
        },
        "ask": {
            "type": "approval",
            "name": "Customer agrees",
            "at": [576, 0],
            "params": {
                "title": "Pay 20.00 EUR back to the card ending in 4421?",
                "text": "Arrives in 2 to 3 days.",
                "by": ["chat"],
            },
        },
        "answer": {
            "type": "response",
            "name": "Answer",
            "at": [880, 0],
            "params": {"body": "Your parcel left Leipzig on Monday and arrives tomorrow before noon."},
        },
    },
    "edges": [
        {"source": "chat", "target": "fee"},
        {"source": "fee", "handle": "yes", "target": "ask"},
        {"source": "fee", "handle": "no", "target": "answer"},
        {"source": "ask", "handle": "approve", "target": "answer"},
    ],
}
ORDERS: dict[str, Any] = {
    "format": "weft/1",
    "name": "orders",
    "description": "Reserves stock for each line and writes to the warehouse",
    "blocks": {
        "start": {"type": "start", "name": "Order arrives", "at": [0, 0]},
        "each": {
            "type": "loop",
            "name": "Each order line",
            "at": [272, 0],
            "size": [512, 224],
            "params": {"mode": "each", "items": "<start.lines>"},
        },
        "stock": {
            "type": "function",
            "name": "Reserve stock",
            "parent": "each",
            "at": [48, 48],
            "params": {
                "code": "if (<loop.item> > 90) throw new Error('409 held by another order'); return {held: <loop.item>}"
            },
        },
        "entry": {
            "type": "set",
            "name": "Write entry",
            "parent": "each",
            "at": [288, 48],
            "params": {"value": "<stock.result.held>"},
        },
        "big": {
            "type": "condition",
            "name": "Above 400 EUR?",
            "at": [848, 0],
            "params": {"cases": [{"id": "yes", "when": "<start.amount> > 400"}, {"id": "no"}]},
        },
        "ask": {
            "type": "approval",
            "name": "Ask the buyer",
            "at": [1136, -80],
            "params": {"title": "Buy for <start.amount> EUR?"},
        },
        "charge": {"type": "set", "name": "Charge", "at": [1136, 112], "params": {"value": "<start.amount>"}},
        "tell": {"type": "set", "name": "Write to the team", "at": [848, 272], "params": {"value": "sold out"}},
    },
    "edges": [
        {"source": "start", "target": "each"},
        {"source": "each", "handle": "body", "target": "stock"},
        {"source": "stock", "target": "entry"},
        {"source": "each", "handle": "error", "target": "tell"},
        {"source": "each", "target": "big"},
        {"source": "big", "handle": "yes", "target": "ask"},
        {"source": "big", "handle": "no", "target": "charge"},
        {"source": "ask", "handle": "approve", "target": "charge"},
    ],
}


def support() -> dict[str, Any]:
    """An agent that answers while open orders are checked three at a time."""
    orders = [
        {"sku": sku, "delay": delay, "fail": fail}
        for sku, delay, fail in (
            ("TW-14", 40, 0),
            ("LN-03", 40, 0),
            ("WL-77", 0, 2),
            ("RC-20", 25000, 0),
            ("TW-15", 0, 0),
        )
    ]
    fields = [
        {"name": "question", "type": "string", "default": "Where is my order 1042?"},
        {"name": "orders", "type": "array", "default": orders},
    ]
    blocks: dict[str, Any] = {
        "start": {"type": "start", "name": "Customer writes", "at": [0, 24], "params": {"fields": fields}},
        "support": {
            "type": "agent",
            "name": "Support",
            "at": [320, 0],
            "params": {
                "model": "dev:support",
                "system": SHOP,
                "prompt": "<start.question>",
                "tools": [
                    tool("find_order", FIND_PARAMS, NUMBER),
                    tool("refund", REFUND_PARAMS, {**NUMBER, "amount": {"type": "number"}}, approve="always"),
                ],
                "max_rounds": 8,
            },
        },
        "late": {
            "type": "condition",
            "name": "Is it late?",
            "at": [784, 24],
            "params": {"cases": [{"id": "yes", "when": '<support.content>.includes("late")'}, {"id": "no"}]},
        },
        "ask": {
            "type": "approval",
            "name": "Ask the manager",
            "at": [1056, -40],
            "params": {"title": "Pay the shipping back?", "expires_in_s": 172_800, "on_expire": "reject"},
        },
        "answer": {
            "type": "http",
            "name": "Answer",
            "at": [1056, 104],
            "params": {"url": "${WEFT_BASE_URL}/demo/echo", "method": "POST"},
        },
        "each": {
            "type": "parallel",
            "name": "Each open order",
            "at": [320, 256],
            "size": [592, 176],
            "params": {"mode": "each", "items": "<start.orders>", "concurrency": 3},
        },
        "stock": {
            "type": "function",
            "name": "Check stock",
            "parent": "each",
            "at": [48, 56],
            "params": {"code": "return {free: <parallel.item.sku>.charCodeAt(0) % 20}"},
        },
        "entry": {
            "type": "http",
            "name": "Write entry",
            "parent": "each",
            "at": [336, 56],
            "params": {
                "url": "${WEFT_BASE_URL}/demo/echo?fail=<parallel.item.fail>&delay_ms=<parallel.item.delay>",
                "method": "POST",
                "idempotency_header": "Idempotency-Key",
            },
            "policy": {"retry": {"max_attempts": 3, "backoff": "fixed", "initial_ms": 9000, "jitter": 0}},
        },
        "warehouse": {
            "type": "set",
            "name": "Write to the warehouse",
            "at": [1056, 296],
            "params": {"value": "<each.results>"},
        },
    }
    edges = [
        ("start", "support"),
        ("start", "each"),
        ("support", "late"),
        ("late", "yes", "ask"),
        ("late", "no", "answer"),
        ("each", "body", "stock"),
        ("stock", "entry"),
        ("each", "warehouse"),
    ]
    return {**document(blocks, edges), "name": "support-desk"}


REFUNDS = {
    **document(
        {
            "support": {
                "type": "agent",
                "name": "Support",
                "at": [288, 0],
                "params": {
                    "model": "dev:support",
                    "system": DESK,
                    "prompt": "Where is my order 1042?",
                    "tools": [
                        tool("find_order", FIND_PARAMS, NUMBER),
                        tool("refund", REFUND_PARAMS, {**NUMBER, "amount": {"type": "number"}}),
                    ],
                    "output_schema": {
                        "type": "object",
                        "properties": {"refund": {"type": "number"}, "answer": {"type": "string"}},
                        "required": ["refund", "answer"],
                    },
                },
            },
            "above": {
                "type": "condition",
                "name": "Refund above 50?",
                "at": [752, 32],
                "params": {"cases": [{"id": "yes", "when": "<support.content.refund> > 50"}, {"id": "no"}]},
            },
            "ask": {
                "type": "approval",
                "name": "Ask the manager",
                "at": [1040, -64],
                "params": {"title": "Pay <support.content.refund> EUR back?"},
            },
            "pay": {
                "type": "http",
                "name": "Pay back",
                "at": [1360, 48],
                "params": {
                    "url": "${WEFT_BASE_URL}/demo/echo?amount=<support.content.refund>",
                    "method": "POST",
                    "idempotency_header": "Idempotency-Key",
                },
            },
        },
        [("start", "support"), ("support", "above"), ("above", "yes", "ask"), ("above", "no", "pay"), ("ask", "pay")],
    ),
    "name": "refund-desk",
}

INVOICES = {
    **document(
        {
            "read": {
                "type": "function",
                "name": "Read the invoice",
                "at": [272, 0],
                "params": {
                    "code": "if (<start.lines> === 0) throw new Error('lines is empty'); return <start.lines> * 20"
                },
            },
            "book": {
                "type": "http",
                "name": "Reserve stock",
                "at": [560, 0],
                "params": {
                    "url": "${WEFT_BASE_URL}/demo/echo?fail=<start.fail>&key=<start.order>",
                    "method": "POST",
                    "idempotency_header": "Idempotency-Key",
                },
                "policy": {"retry": {"max_attempts": 2, "backoff": "fixed", "initial_ms": 50, "jitter": 0}},
            },
            "note": {"type": "set", "name": "Write entry", "at": [848, 0], "params": {"value": "<start.order>"}},
        },
        [("start", "read"), ("read", "book"), ("book", "note")],
    ),
    "name": "invoice-reader",
    "description": "Reads invoices, reserves what is on them and books it",
}
BANDS = 4
ROWS = 5
COLUMNS = 48
HALTS = ((11, "fail"), (19, "wait"), (26, "run"), (33, "wait"), (40, "run"))


def fulfilment() -> dict[str, Any]:
    """A thousand blocks in bands, some in containers, of which one run has failed, waiting and running ones."""
    blocks: dict[str, Any] = {}
    edges: list[tuple[str, ...]] = []
    names = ("Each file", "Each order line", "Three at a time")
    for band in range(BANDS):
        for row in range(ROWS):
            last = "start"
            stop = HALTS[(band * 2 + row) % len(HALTS)]
            for column in range(COLUMNS):
                at = [288 + column * 272, band * ROWS * 144 + band * 160 + row * 144]
                if row == 1 and column % 16 == 8:
                    id = f"c{band}x{column}"
                    blocks[id] = {
                        "type": "parallel",
                        "name": names[(band + column // 16) % 3],
                        "at": [at[0], at[1] - 40],
                        "size": [3 * 272 + 32, 3 * 144],
                        "params": {"mode": "count", "count": 2},
                    }
                    inner = id
                    for step in range(6):
                        part = f"{id}s{step}"
                        blocks[part] = {
                            "type": "set",
                            "name": f"Step {step + 1}",
                            "parent": id,
                            "at": [48 + (step % 3) * 264, 64 + (step // 3) * 144],
                            "params": {"value": step},
                        }
                        edges.append((inner, "body", part) if step == 0 else (inner, part))
                        inner = part
                    edges.append((last, id))
                    last = id
                if row in (1, 2) and 8 <= column % 16 <= 10:
                    continue
                id = f"b{band}x{row}x{column}"
                blocks[id] = {"type": "set", "name": f"Step {column}", "at": at, "params": {"value": column}}
                if column == stop[0] + band:
                    blocks[id] = {**HALTED[stop[1]], "at": at}
                if column == stop[0] + band + 1 and stop[1] == "fail":
                    edges.append((last, "error", id))
                else:
                    edges.append((last, id))
                last = id
    return {**document(blocks, edges), "name": "fulfilment"}


HALTED: dict[str, dict[str, Any]] = {
    "fail": {"type": "function", "name": "Check stock", "params": {"code": "throw new Error('sold out')"}},
    "wait": {"type": "approval", "name": "Ask the buyer", "params": {"title": "Buy it?"}},
    "run": {"type": "http", "name": "Load orders", "params": {"url": "${WEFT_BASE_URL}/demo/echo?delay_ms=29000"}},
}
