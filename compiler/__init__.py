"""Workflow JSON -> Plan. Pure: no IO, no clock, knows nothing of execution. Read `compile.py` first."""
