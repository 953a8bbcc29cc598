"""An estimate of the length of a text in tokens, for a server that does not count them."""

from __future__ import annotations

import math
import re

# Tokenizers split a text in about this way before they merge bytes: words with the space before them, white space, and
# other characters. A change of case or a digit inside of a word mostly begins another token.
_PARTS = re.compile(r" ?(?P<word>[A-Z]?[a-z]++|[A-Z]++)|(?P<space>\s++)|(?P<other>.)", re.DOTALL)
LETTERS = 4  # of a word in one token
CAPITALS = 2  # of a word in capitals, such as an identifier or encoded bytes


def estimated_tokens(text: str) -> int:
    """Return a length in tokens that hardly any tokenizer exceeds, so that a prompt fits."""
    return sum(_length(part) for part in _PARTS.finditer(text))


def _length(part: re.Match[str]) -> int:
    if word := part["word"]:
        return math.ceil(len(word) / (CAPITALS if word.isupper() else LETTERS))
    return 1 if part["space"] else max(1, len(part["other"].encode("utf-8", "replace")) - 1)
