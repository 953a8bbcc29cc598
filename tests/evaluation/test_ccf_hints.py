"""The terms that set a family apart."""

from __future__ import annotations

from tests.benchmarks.ccf_hints import MAX_HINTS, mined_hints

TEXTS = [["vlan", "port", "open"], ["vlan", "switch", "open"], ["disk", "volume", "open"], ["disk", "full", "open"]]
FAMILIES = ["network", "network", "storage", "storage"]


def test_the_terms_that_only_one_family_has_come_first() -> None:
    hints = mined_hints(TEXTS, FAMILIES)
    assert next(iter(hints["network"])) == "vlan"
    assert next(iter(hints["storage"])) == "disk"


def test_a_term_that_all_families_share_is_no_hint() -> None:
    assert all("open" not in words for words in mined_hints(TEXTS, FAMILIES).values())


def test_a_text_that_repeats_a_term_is_one_witness() -> None:
    assert mined_hints([[*TEXTS[0], "port", "port"], *TEXTS[1:]], FAMILIES) == mined_hints(TEXTS, FAMILIES)


def test_a_family_has_a_bounded_number_of_hints() -> None:
    texts = [[f"{family}{number}" for number in range(20)] for family in "ab" for _ in range(6)]
    assert len(mined_hints(texts, [*"aaaaaabbbbbb"])["a"]) == MAX_HINTS
