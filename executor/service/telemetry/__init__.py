"""Traces of runs, made from their journals."""
