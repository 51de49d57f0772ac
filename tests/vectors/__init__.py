"""Streams of events from real runs, and what each event means: `runs.json`, read here and by the tests of the editor.

    python -m tests.vectors record

plays the runs again and writes the file. The file is a promise to readers of old journals: look at what changed in it
before you commit it. See `docs/reference/events.md`.
"""
