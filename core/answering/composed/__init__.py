"""Answers that a language model writes, each sentence checked against the passages that it cites."""
