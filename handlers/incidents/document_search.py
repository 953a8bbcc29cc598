"""Documents and runbooks as a tool of the language model that investigates an incident."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.answering.find import search
from core.knowledge.retriever import Retriever
from core.model.conversation import Audience
from core.ports import ToolParameter
from core.rca.observation_tools import SEARCH_DOCUMENTS

PASSAGES = 4  # that are shown at once


@dataclass(frozen=True, slots=True)
class DocumentSearch:
    """A tool that searches the documents and runbooks that everybody who sees the incident may read."""

    retriever: Retriever
    audience: Audience
    name: str = SEARCH_DOCUMENTS
    description: str = "Searches the company's documents and runbooks: how a system works, and what to do in a case."
    parameters: tuple[ToolParameter, ...] = (ToolParameter("question", "what to look for, in a few words"),)

    async def call(self, arguments: Mapping[str, str]) -> str:
        """Return the nearest passages below their titles. Raises IndexUnavailable."""
        found = (await search(arguments["question"], self.audience, self.retriever)).passages[:PASSAGES]
        shown = (f"{each.passage.title} › {each.passage.heading}\n{each.passage.text}" for each in found)
        return "\n\n".join(shown) or "No document says anything of that."
