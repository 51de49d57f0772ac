"""What the engine offers, one file for each topic: `engine.waits` is the `Waits` of `waits.py`."""
