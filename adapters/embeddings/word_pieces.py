"""Split text into the word pieces of BERT's uncased vocabulary (Wu et al. 2016; Devlin et al. 2019).

The library `tokenizers` does the same, but brings a client of a model hub and five more packages. The vocabulary is
Google's (Apache-2.0), one piece on each line.
"""

from __future__ import annotations

import lzma
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

CLASSIFICATION, SEPARATOR, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
LONGEST_WORD = 100  # characters; a longer one is unknown
READ = 8  # characters read of a text for each piece that is wanted, so that a long text costs no more

_VOCABULARY = Path(__file__).with_name("bert_uncased.txt.xz")
# A word, or a single character of punctuation or of a script without spaces.
_WORD = re.compile(
    r"[^\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[^\s\w]|_|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)


class WordPieces:
    """The vocabulary, and the numbers of its pieces."""

    def __init__(self) -> None:
        pieces = lzma.decompress(_VOCABULARY.read_bytes()).decode().splitlines()
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._of_word = lru_cache(maxsize=10_000)(self._split)

    def numbers(self, text: str, limit: int) -> list[int]:
        """Return the numbers of the first pieces of a text, at most `limit` with the two that enclose them."""
        numbers = [self._numbers[CLASSIFICATION]]
        for word in _WORD.finditer(_plain(text[: READ * limit])):
            numbers += self._of_word(word[0])
            if len(numbers) >= limit:
                break
        return [*numbers[: limit - 1], self._numbers[SEPARATOR]]

    def _split(self, word: str) -> tuple[int, ...]:
        """Return the longest pieces from left to right; unknown as a whole if any part is."""
        pieces: list[int] = []
        start = 0
        while start < len(word) <= LONGEST_WORD:
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if f"{prefix}{word[start:end]}" in self._numbers), 0)
            if not end:
                break
            pieces.append(self._numbers[f"{prefix}{word[start:end]}"])
            start = end
        return tuple(pieces) if start == len(word) else (self._numbers[UNKNOWN],)


def _plain(text: str) -> str:
    """Return the text in lower case, without accents and control characters."""
    apart = unicodedata.normalize("NFD", text.lower())
    return "".join(
        each
        for each in apart
        if each.isspace() or ((category := unicodedata.category(each)) != "Mn" and category[0] != "C")
    )
