"""How much of a question stands in statements and around them."""

from __future__ import annotations

from core.answering.coverage import HEADING_WEIGHT, LINK_WEIGHT, TITLE_WEIGHT, coverage
from core.answering.statements import statements
from core.knowledge.document import Document
from core.knowledge.passages import passages_of


def covered(text: str, title: str = "Title", **weights: float) -> float:
    [passage] = passages_of(Document("docs/a.md", "docs", "runbooks", title, text))
    return coverage(weights or {"crane": 1.0}, statements(passage))


def test_a_term_counts_most_in_a_statement_and_less_around_it() -> None:
    assert covered("The crane is slow.") == 1.0
    assert covered("## Crane\n\nSlow.") == HEADING_WEIGHT
    assert covered("Slow.", title="Crane") == TITLE_WEIGHT
    assert covered("Slow.") == 0.0


def test_what_a_link_names_is_said_elsewhere_and_counts_least() -> None:
    assert covered("To stop it, see [the crane](crane.md#stop).") == LINK_WEIGHT
    assert covered("## Crane\n\nTo stop it, see [the crane](crane.md#stop).") == HEADING_WEIGHT
    assert covered("The crane is slow, see [the crane](crane.md).") == 1.0


def test_a_picture_is_no_link() -> None:
    assert covered("![crane](crane.png)") == 1.0


def test_terms_count_by_their_weight() -> None:
    assert covered("The crane is slow.", crane=3.0, winch=1.0) == 0.75
    assert coverage({}, []) == 0.0
