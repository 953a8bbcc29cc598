"""Where the words of a query stand in several passages at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.knowledge.occurrences import Occurrences

numbers = st.integers(0, 9)
texts = st.lists(st.lists(numbers, max_size=12), max_size=6)


def found(asked: list[int], said: list[list[int]]) -> Occurrences:
    return Occurrences.of(np.array(asked, np.uint32), [np.array(text, np.uint32) for text in said])


@given(st.sets(numbers, min_size=1), texts, st.data())
def test_each_number_is_counted_in_each_span_of_each_text(
    asked: set[int], said: list[list[int]], data: st.DataObject
) -> None:
    wanted = sorted(asked)
    occurrences = found(wanted, said)
    spans, expected = list[tuple[int, int]](), list[list[int]]()
    for start, text in zip(occurrences.starts.tolist(), said, strict=True):
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, len(text)))
        spans.append((start + begin, start + end))
        expected.append([text[begin:end].count(number) for number in wanted])
    counted = occurrences.counts(np.array(spans, np.intp).reshape(-1, 2))
    assert counted.tolist() == expected


def test_nothing_is_found_in_no_text() -> None:
    assert found([3], []).counts(np.empty((0, 2), np.intp)).shape == (0, 1)
