"""The kernel: what must be right. Every promise of weft is kept here, and nothing here knows a block."""
