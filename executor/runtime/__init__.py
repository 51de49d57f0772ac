"""asyncio around the core: no policy here. Read `run.py` first."""
