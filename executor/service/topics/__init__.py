"""The topics of the engine, one file each: `engine.waits` is the `Waits` of `waits.py`."""
