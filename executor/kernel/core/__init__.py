"""The sans-IO core: facts in, events out, state is a fold over the events. Read `decide.py`, then `evolve.py`.

Nothing here may import asyncio, time, random, os, a database, a network client or logging. Payloads never enter: the
core sees routes and counts, the runtime keeps the values.
"""
