"""A recorded run played again by another document, with nothing called outside."""
