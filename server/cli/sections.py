"""How `weft --help` is laid out: commands by what one wants to do, in the order one comes to need them."""

from __future__ import annotations

import click

SECTIONS = (
    ("Make workflows", ("validate", "plan", "deploy", "run", "workflows", "get", "activate")),
    ("Watch runs", ("runs", "events", "why", "state", "diff")),
    ("Answer them", ("inbox", "answer", "withdraw", "signal", "signals")),
    ("Stop, repair and delete", ("cancel", "retry", "fork", "migrate", "delete")),
    ("Start runs automatically", ("cron", "hooks")),
    (
        "Run the server",
        ("serve", "link", "token", "doctor", "backup", "restore", "gc", "cache", "sql", "export", "signing-key"),
    ),
)


class Sections(click.Group):
    """A group whose help lists its commands under the headings of SECTIONS; each must be in one of them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        limit = formatter.width - 6 - width
        for title, names in SECTIONS:
            rows = [(name.ljust(width), self.commands[name].get_short_help_str(limit)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)
