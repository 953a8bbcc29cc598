"""Where the keyword lists of manual families come from."""

from __future__ import annotations

from enum import StrEnum


class Lexicon(StrEnum):
    NONE = "none"
    MINED = "mined"
    HAND = "hand"

    @property
    def label(self) -> str:
        return {
            Lexicon.NONE: "no keyword lists",
            Lexicon.MINED: "keyword lists mined from the corpus without the tested chunk",
            Lexicon.HAND: "written with the questions in view",
        }[self]
