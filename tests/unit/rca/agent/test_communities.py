from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.rca.log_lines import communities

CLIQUES = [(one, other, 1.0) for group in (range(4), range(4, 8)) for one in group for other in group if one < other]


def test_groups_with_a_weak_link_are_two_communities() -> None:
    assert communities(8, [*CLIQUES, (3, 4, 0.1)]) == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_strong_link_decides_where_a_node_belongs() -> None:
    found = communities(9, [*CLIQUES, (8, 0, 0.1), (8, 5, 2.0)])
    assert found[8] == found[5] != found[0]


def test_nodes_without_edges_are_communities_of_their_own() -> None:
    assert communities(3, []) == [0, 1, 2]
    assert communities(0, []) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0.01, 1)), max_size=40))
def test_equal_graphs_have_equal_communities_numbered_by_first_member(edges: list[tuple[int, int, float]]) -> None:
    kept = [each for each in edges if each[0] != each[1]]
    found = communities(10, kept)
    assert found == communities(10, kept)
    assert list(dict.fromkeys(found)) == list(range(len(set(found))))
