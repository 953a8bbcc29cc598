from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.rca.log_lines import SHORT, chunked, templates_of

POOL = [f"ERROR connection pool exhausted, {busy} of 40 connections busy" for busy in (37, 38, 39, 40)]
DISK = [f"WARN volume data-{number} is nearly full" for number in (1, 2, 3, 4)]


def test_neighbouring_lines_about_one_thing_are_one_chunk() -> None:
    assert [chunk.lines for chunk in chunked([*POOL, *DISK])] == [tuple(POOL), tuple(DISK)]


def test_a_stray_line_within_a_chunk_does_not_part_it() -> None:
    chunks = chunked([*DISK, *POOL[:2], "heartbeat", *POOL[2:], *DISK])
    assert ("heartbeat",) not in [chunk.lines for chunk in chunks]
    assert sum("heartbeat" in chunk.lines for chunk in chunks) == 1


def test_lines_far_apart_are_not_one_chunk_however_alike() -> None:
    between = [f"line {chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(60)]
    chunks = chunked([*POOL, *between, *POOL])
    assert chunks[0].lines[:4] == tuple(POOL)
    assert all(chunk.lines != (*POOL, *POOL) for chunk in chunks)


@given(st.lists(st.sampled_from(["alpha beta 1", "alpha beta 2", "gamma delta", "epsilon", ""]), max_size=60))
def test_the_chunks_are_the_log_in_order_without_a_gap(lines: list[str]) -> None:
    chunks = chunked(lines)
    assert [line for chunk in chunks for line in chunk.lines] == lines
    assert chunks == chunked(lines)


def test_what_repeats_in_a_long_log_is_read_a_few_times_only() -> None:
    lines = [f"GET /items/{number} 200" for number in range(SHORT)]
    lines.insert(1_500, "FATAL no space left on device")
    chunks = chunked(lines)
    assert sum(len(chunk.lines) for chunk in chunks) == 4
    rarest = max(chunks, key=lambda chunk: chunk.rarity)
    assert "FATAL no space left on device" in rarest.lines


def test_an_embedding_model_says_what_is_alike_where_there_is_one() -> None:
    lines = ["pool exhausted", "no free connection", "disk full", "volume has no space"]
    assert templates_of(lines) == lines
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32)
    assert [chunk.lines for chunk in chunked(lines, vectors)] == [tuple(lines[:2]), tuple(lines[2:])]


def test_an_empty_log_has_no_chunks() -> None:
    assert chunked([]) == []
