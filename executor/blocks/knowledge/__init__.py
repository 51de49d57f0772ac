"""Collections of documents that are searched by meaning and by words. `text` makes chunks and words of files, `ranking`
compares vectors, `collections` is what blocks and the API call."""
