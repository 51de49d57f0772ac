"""asyncio around the core: no policy here. Read `loop.py` first."""
