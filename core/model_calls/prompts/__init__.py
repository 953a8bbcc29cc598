"""Prompts for the language model: one text file per prompt, with one typed render function."""

from __future__ import annotations

from core.model_calls.prompts.answering import Composed, Rewritten

# All reply types that the model may be asked for.
REPLY_TYPES: tuple[type, ...] = (Rewritten, Composed)
