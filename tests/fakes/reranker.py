"""A reranker that prefers texts with a given word."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.errors import ModelUnavailable


class FakeReranker:
    """Texts with `word` come first. `asked` are the questions that it got."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.asked: list[str] = []
        self.failing = False

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        if self.failing:
            raise ModelUnavailable("The reranker failed.")
        self.asked.append(query)
        return sorted(range(len(texts)), key=lambda place: (self.word not in texts[place].split(), place))
