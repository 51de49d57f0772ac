"""Code that type checkers read: `traced.py` is never run, `docs.py` has the code of the pages."""
