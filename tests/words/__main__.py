import sys

from tests.words.texts import all_texts, find, no_sentences

under = sys.argv[1:]
for found in [*find(all_texts()), *no_sentences()]:
    if not under or any(found.place.startswith(path) for path in under):
        print(found)
