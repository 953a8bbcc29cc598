"""What a query is compared with is stored as numbers: it must say what the text says."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.knowledge.document import Document, DocumentKind, Passage
from core.knowledge.lexical import K1, TITLE_WEIGHT, B
from core.knowledge.markdown import BlockKind, blocks
from core.knowledge.passages import passages_of
from core.knowledge.rerank import ADJACENT, AVERAGE_LENGTH, Closeness, closeness, weighted
from core.knowledge.term_numbers import term_numbers
from core.knowledge.terms import terms, tokens
from core.knowledge.windows import MAX_GAP, OVERLAP_TERMS, WINDOW_TERMS, WindowedPassage, windowed

TEXT = """The pools of runner-7 are large, and so are its caches.

## Draining the runner

Mark the runner as drained, then `kubectl drain runner_pool`. The runner finishes its job.

- A new runner has a cold cache. 磁盘空间不足时,清理旧的镜像。
- Nobody waits for the pool.

""" + "\n\n".join(
    f"{'### Cache ' + str(number) if number % 3 == 0 else ''}\n\n{'Of the cache and the pool it says nothing here. ' * number}"
    for number in range(1, 9)
)
QUERIES = [
    "drain the runner pool",
    "cold cache 磁盘空间",
    "runner_pool runner-7",
    "zebra",
    "the",
    "pool cache pool runner",
]

words = st.lists(st.sampled_from("the pool cache runner drain runner_pool 磁盘空间 zebra .".split()), max_size=400)


def passage(text: str, title: str = "Runner pools", kind: DocumentKind = DocumentKind.PAGE) -> Passage:
    return passages_of(Document("docs/a", "docs", "runbooks", title, text, kind))[0]


def restored(item: Passage) -> WindowedPassage:
    return WindowedPassage.from_bytes(windowed(item).to_bytes())


def windows_of(item: Passage) -> list[Counter[str]]:
    """How much of each term each window holds, counted from the text itself."""
    heading = terms(item.heading)
    pieces: list[tuple[list[str], list[str]]] = []
    for block in blocks(item.text):
        heading = terms(block.text) if block.kind is BlockKind.HEADING else heading
        pieces.append((terms(block.text), heading))
    title = Counter({term: TITLE_WEIGHT * count for term, count in Counter(terms(item.title)).items()})
    found: list[Counter[str]] = []
    start = end = 0
    while end < len(pieces):
        end = start + 1
        while end < len(pieces) and sum(len(said) for said, _ in pieces[start : end + 1]) <= WINDOW_TERMS:
            end += 1
        window = Counter(title)
        window.update(pieces[start][1])
        for said, _ in pieces[start:end]:
            window.update(said)
        found.append(window)
        overlap = end
        while overlap - 1 > start and sum(len(said) for said, _ in pieces[overlap - 1 : end]) <= OVERLAP_TERMS:
            overlap -= 1
        start = overlap
    return found or [title]


def best_window(query: str, windows: list[Counter[str]]) -> float:
    return max(
        sum(
            window[term] * (K1 + 1) / (window[term] + K1 * (1 - B + B * window.total() / AVERAGE_LENGTH))
            for term in set(terms(query))
        )
        for window in windows
    )


def look(query: str, stored: WindowedPassage) -> Closeness:
    return closeness(weighted(tokens(query), dict.fromkeys(terms(query), 1.0)), [stored])[0]


@pytest.mark.parametrize("kind", DocumentKind)
@pytest.mark.parametrize("query", QUERIES)
def test_what_is_stored_says_of_a_query_what_the_text_says(query: str, kind: DocumentKind) -> None:
    item = passage(TEXT, kind=kind)
    windows = windows_of(item)
    found = look(query, restored(item))
    assert found.window == pytest.approx(best_window(query, windows))
    held = {term for window in windows for term in window}
    asked = set(terms(query))
    assert found.coverage == pytest.approx(len(asked & held) / max(1, len(asked)))


@given(st.lists(words, max_size=5), words)
def test_what_is_said_of_a_passage_is_the_same_whatever_is_looked_at_beside_it(
    pages: list[list[str]], asked: list[str]
) -> None:
    query = " ".join(asked)
    prepared = weighted(tokens(query), dict.fromkeys(terms(query), 1.0))
    stored = [restored(passage(" ".join(["x", *page]).replace(".", "\n\n"))) for page in pages]
    assert closeness(prepared, stored) == [look(query, each) for each in stored]


@given(words, words)
def test_that_holds_for_any_text_and_query(text: list[str], query: list[str]) -> None:
    item = passage(" ".join(["x", *text]).replace(".", "\n\n"))
    assert look(" ".join(query), restored(item)).window == pytest.approx(
        best_window(" ".join(query), windows_of(item)), abs=1e-9
    )


@given(st.text())
def test_any_passage_comes_back_as_it_was_stored(text: str) -> None:
    before = windowed(passage(f"x {text}", title=text[:40]))
    after = WindowedPassage.from_bytes(before.to_bytes())
    assert (after.title_end, after.text_start) == (before.title_end, before.text_start)
    for name in ("numbers", "gaps", "bounds"):
        assert getattr(after, name).tolist() == getattr(before, name).tolist()


def test_title_heading_and_text_are_kept_apart() -> None:
    found = windowed(passage(TEXT, "Runner pools"))
    assert found.title.tolist() == term_numbers("Runner pools")
    assert found.text.tolist() == [number for block in blocks(TEXT) for number in term_numbers(block.text)]


@pytest.mark.parametrize("distance", [1, ADJACENT, ADJACENT + 1, MAX_GAP, 10 * MAX_GAP])
def test_how_near_two_words_stand_is_kept(distance: int) -> None:
    text = f"cold {'of ' * (distance - 1)}cache"
    assert look("cold cache", restored(passage(text))).pairs == float(distance <= ADJACENT)


@pytest.mark.parametrize("stored", [b"", b"short", windowed(passage(TEXT)).to_bytes()[:40]])
def test_a_damaged_passage_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"buffer|values"):
        WindowedPassage.from_bytes(stored)
