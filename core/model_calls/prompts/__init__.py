"""Prompts for the language model: one text file for each, and one typed function that renders it."""

from __future__ import annotations

from core.model_calls.prompts.answering import Composed, Rewritten
from core.model_calls.prompts.rca_log import ChunkReading, LogSummary
from core.model_calls.prompts.triage import Ballot, Distilled, DocumentSummary, MonitoringSummary, Ranking

# Every form that a reply of the model may be asked in: what any model, however bad, must be able to give.
REPLY_TYPES: tuple[type, ...] = (
    Rewritten,
    Composed,
    ChunkReading,
    LogSummary,
    Distilled,
    DocumentSummary,
    Ranking,
    MonitoringSummary,
    Ballot,
)
