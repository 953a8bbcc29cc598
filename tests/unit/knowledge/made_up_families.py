"""Corpora in which the family of a page can be told from its words, or cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.conversation import PUBLIC
from core.knowledge.document import Document, Passage
from core.knowledge.passages import passages_of

WORDS = {
    "ferries": "deck hull crossing mooring tide harbour gangway anchor lifeboat stern".split(),
    "depots": "shelf pallet forklift stock crate barcode inventory aisle loading ramp".split(),
    "kiosks": "screen printer ticket receipt touch paper reader coin card display".split(),
}
SHARED = "status check restart report plan limit level error update list".split()
PAGES = 25  # of each family


def short_pages(
    readers: frozenset[str] = frozenset({PUBLIC}), families: Mapping[str, Sequence[str]] = WORDS
) -> list[Passage]:
    """Pages of one sentence: what is asked of them is not said twice, but each family has words of its own."""
    generator = np.random.default_rng(1)
    found: list[Passage] = []
    for family, words in families.items():
        for number in range(PAGES):
            own, shared = generator.choice(words, 2, replace=False), generator.choice(SHARED, 4, replace=False)
            found += page(f"{family}/{number}", family, f"{' '.join([*own, *shared])}.", readers)
    return found


def long_pages() -> list[Passage]:
    """Pages that say everything twice, in families that mean nothing: search finds a page by any of its sentences."""
    generator = np.random.default_rng(2)
    found: list[Passage] = []
    for number in range(3 * PAGES):
        words = [f"{word}{number}" for word in SHARED]
        sentences = [f"The {' '.join(generator.choice(words, 5, replace=False))}." for _ in range(8)]
        found += page(f"page/{number}", f"family-{number % 3}", "\n\n".join(sentences))
    return found


def page(name: str, family: str, text: str, readers: frozenset[str] = frozenset({PUBLIC})) -> list[Passage]:
    return passages_of(Document(f"made-up/{name}", "made-up", family, f"Page {name}", text, readers=readers))
