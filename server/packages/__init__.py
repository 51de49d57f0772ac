"""Packages that bring connectors and blocks: reading them without executing anything, and signed lists of them."""
