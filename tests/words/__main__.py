import sys

from tests.words.texts import all_texts, find

under = sys.argv[1:]
for found in find(all_texts()):
    if not under or any(found.place.startswith(path) for path in under):
        print(found)
