"""The same five workflows in weft and in other systems; see README.md."""
