"""Texts that users meet, and the words that are not to come back in them.

python -m tests.words [PATH ...]      every such word, with its place
"""
