"""Embedding models: the embedded default, sentence-transformers, and an embeddings endpoint."""

from __future__ import annotations

import re

_E5 = re.compile(r"(?<![a-z0-9])e5(?![a-z0-9])", re.IGNORECASE)


def prefixes(model: str) -> tuple[str, str]:
    """Return what stands before a question and before a passage, by the model's name; empty for most models."""
    return ("query: ", "passage: ") if _E5.search(model) else ("", "")
