"""What is not supported is withheld."""

from __future__ import annotations

from core.answering.answer import Citation, Sentence
from core.answering.verify import supported
from core.knowledge.passages import passages_of
from core.model.document import Document

[PASSAGE] = passages_of(
    Document("docs/a", "docs", "f", "Rolling back", "Roll back with `slipway rollback`. It takes 90 seconds.")
)
CITATION = Citation(1, "docs/a", PASSAGE.id, "Rolling back", "", "", "", "Roll back")


def kept(*sentences: Sentence) -> list[str]:
    return [sentence.text for sentence in supported(sentences, [CITATION], {PASSAGE.id: PASSAGE})]


def test_a_quotation_is_supported() -> None:
    assert kept(Sentence("It takes 90 seconds.", (1,))) == ["It takes 90 seconds."]


def test_another_number_or_command_is_not() -> None:
    assert kept(Sentence("It takes 30 seconds.", (1,)), Sentence("Roll back with `kubectl delete`.", (1,))) == []


def test_a_sentence_without_a_citation_or_with_an_unknown_one_is_not() -> None:
    assert kept(Sentence("It takes 90 seconds.", ()), Sentence("It takes 90 seconds.", (7,))) == []


def test_a_sentence_that_says_nothing_is_not() -> None:
    assert kept(Sentence("…", (1,))) == []
