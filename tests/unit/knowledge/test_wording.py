"""How near the wording of a passage comes to that of a question."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.knowledge.document import Document, Passage
from core.knowledge.encoder import Encoder
from core.knowledge.passages import passages_of
from core.knowledge.wording import RUN, STEP, Wording, likeness, worded, worded_query

CORPUS = {
    "revert": "To revert a release without a window, ask the captain of the train.",
    "reverted": "The release was reverted within a window that the captain gave.",
    "窗口": "磁盘空间不足时，清理旧的镜像。",
}


def passage(title: str, text: str) -> Passage:
    return passages_of(Document(f"docs/{title}", "docs", "runbooks", title, text))[0]


PASSAGES = {title: passage(title, text) for title, text in CORPUS.items()}
STATISTICS = Encoder.fitted(list(PASSAGES.values())).statistics


def look(query: str, item: Passage) -> float:
    return likeness(worded_query(query, STATISTICS), [worded(item, STATISTICS)])[0]


def test_words_that_an_index_leaves_out_or_makes_equal_tell_passages_apart() -> None:
    query = "how do I revert a release without a window"
    assert look(query, PASSAGES["revert"]) > look(query, PASSAGES["reverted"])


def test_a_query_in_the_very_words_of_a_passage_and_its_title_has_a_cosine_of_one() -> None:
    assert look(f"revert {CORPUS['revert']}", PASSAGES["revert"]) == pytest.approx(1.0, abs=1e-6)


def test_the_cosine_is_that_of_the_weights_of_both() -> None:
    # of three passages one holds “train” and two hold “captain” and “a”, which is the title
    rarity = math.log(4 / 2) + 1
    item = passage("a", "captain train")
    query = worded_query("captain train zebra", STATISTICS)
    unknown, title = math.log(4) + 1, math.log(4 / 3) + 1
    expected = (math.log(4 / 3) + 1) ** 2 + rarity**2
    lengths = math.hypot(title, rarity, unknown) * math.hypot(title, title, rarity)
    assert likeness(query, [worded(item, STATISTICS)])[0] == pytest.approx(expected / lengths, rel=1e-5)


def test_chinese_is_compared_in_pairs_of_characters() -> None:
    assert look("镜像怎么清理", PASSAGES["窗口"]) > 0


def test_the_best_run_decides_wherever_it_stands() -> None:
    filler = " ".join(f"word{number}" for number in range(3 * RUN))
    said = "ask the captain of the train"
    first, last = (look(said, passage("a", text)) for text in (f"{said} {filler}", f"{filler} {said}"))
    assert first == pytest.approx(last, rel=0.5)
    assert min(first, last) > look(said, passage("a", filler)) == 0.0


@pytest.mark.parametrize("size", [0, 1, STEP // 2, STEP, RUN - 1, RUN, RUN + 1, RUN + STEP, 5 * RUN + 7])
def test_every_word_is_in_a_run(size: int) -> None:
    words = [f"word{number}" for number in range(size)]
    wording = worded(passage("a", f"{' '.join(words)} ."), STATISTICS)
    assert wording.numbers.size == size + 1
    for word in words:
        assert likeness(worded_query(word, STATISTICS), [wording])[0] > 0


def test_what_is_said_of_a_passage_is_the_same_whatever_is_looked_at_beside_it() -> None:
    items = [*PASSAGES.values(), passage("...", "---"), passage("a", "captain train " * RUN)]
    query = "how do I revert a release of the train"
    alone = [look(query, item) for item in items]
    assert likeness(worded_query(query, STATISTICS), [worded(item, STATISTICS) for item in items]) == alone
    assert len({*alone}) > 2


def test_nothing_is_like_nothing() -> None:
    assert look("", PASSAGES["revert"]) == 0.0
    assert look("zebra", PASSAGES["revert"]) == 0.0
    assert look("zebra", passage("...", "---")) == 0.0


def test_what_is_stored_says_the_same() -> None:
    wording = worded(PASSAGES["revert"], STATISTICS)
    restored = Wording.from_bytes(wording.to_bytes())
    assert restored.title_end == wording.title_end
    np.testing.assert_array_equal(restored.numbers, wording.numbers)
    np.testing.assert_array_equal(restored.lengths, wording.lengths)


@pytest.mark.parametrize("stored", [b"", b"abc", b"\x00" * 9, b"\x00\x00\x00\x00\xff\x00\x00\x00"])
def test_what_is_damaged_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match="buffer"):
        Wording.from_bytes(stored)
