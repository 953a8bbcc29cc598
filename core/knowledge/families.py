"""The keywords by which a question names a family of manuals (Evidence-Chain RAG, Method)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.knowledge.terms import normalised


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The keywords of each family: names of its products, commands and abbreviations that its pages may not contain."""

    keywords: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def hints(self, question: str) -> dict[str, float]:
        """Return the share of each family, in [0, 1], among the keywords in a question; all 0 if it contains none.

        Letter case is ignored. A keyword of letters and digits does not match within a longer word.
        """
        text = normalised(question)
        counts = {
            family: sum(_occurs(keyword, text) for keyword in keywords) for family, keywords in self.keywords.items()
        }
        total = sum(counts.values()) or 1
        return {family: count / total for family, count in counts.items()}


def _occurs(keyword: str, text: str) -> bool:
    before = r"(?<![A-Za-z0-9])" if keyword[:1].isascii() else ""
    after = r"(?![A-Za-z0-9])" if keyword[-1:].isascii() else ""
    return re.search(f"{before}{re.escape(keyword)}{after}", text, re.IGNORECASE) is not None
