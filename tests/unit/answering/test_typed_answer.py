"""The answers to the parts of a question as one."""

from __future__ import annotations

from core.answering.answer import Answer, Citation, Sentence
from core.answering.typed_answer import better, joined, part_queries
from core.confidence.prediction import Evaluation


def part(*said: tuple[str, str], coe: float = 0.8, rce: float = 0.7) -> tuple[Answer, Evaluation]:
    """An answer of these sentences, each from this document."""
    documents = list(dict.fromkeys(document for _, document in said))
    citations = tuple(
        Citation(number, document, f"{document}/1", document, "", "", "", document)
        for number, document in enumerate(documents, start=1)
    )
    sentences = tuple(Sentence(text, (documents.index(document) + 1,)) for text, document in said)
    return Answer("q-1", "two things?", sentences, citations, "evidence"), Evaluation(coe, rce)


def test_every_sentence_keeps_its_own_citation() -> None:
    answer, _ = joined([part(("Drain it.", "runner")), part(("Ask Ada.", "people"), ("Or Ben.", "duty"))])
    documents = {citation.number: citation.document_id for citation in answer.citations}
    assert documents == {1: "runner", 2: "people", 3: "duty"}
    assert [(sentence.text, sentence.citations) for sentence in answer.sentences] == [
        ("Drain it.", (1,)),
        ("Ask Ada.", (2,)),
        ("Or Ben.", (3,)),
    ]


def test_a_section_and_a_sentence_of_both_parts_stand_there_once() -> None:
    answer, _ = joined([part(("Drain it.", "runner")), part(("Drain it.", "runner"), ("Then wait.", "runner"))])
    assert [citation.document_id for citation in answer.citations] == ["runner"]
    assert [sentence.text for sentence in answer.sentences] == ["Drain it.", "Then wait."]


def test_an_answer_is_worth_its_weakest_part() -> None:
    _, evaluation = joined([part(("A.", "a"), coe=0.9, rce=0.3), part(("B.", "b"), coe=0.5, rce=0.6)])
    assert evaluation == Evaluation(0.5, 0.3)


def test_parts_replace_the_whole_only_where_none_is_worse() -> None:
    parts = [part(("A.", "a"), coe=0.9, rce=0.6), part(("B.", "b"), coe=0.5, rce=0.7)]
    assert better(parts, part(("W.", "w"), coe=0.4, rce=0.5)) == joined(parts)
    for whole in (part(("W.", "w"), coe=0.6, rce=0.5), part(("W.", "w"), coe=0.4, rce=0.65)):
        assert better(parts, whole) == whole


def test_a_part_that_is_not_answered_leaves_the_whole() -> None:
    whole = part(("W.", "w"), coe=0.1, rce=0.1)
    assert better([part(("A.", "a")), part()], whole) == whole


def test_a_part_that_leans_on_the_one_before_is_searched_with_its_words() -> None:
    question = "how do I roll back a canary and who approves it?"
    first, second = part_queries(question, question)
    assert first == "how do I roll back a canary"
    assert second.startswith(first)
    assert second.endswith("who approves it?")


def test_a_follow_up_is_not_split() -> None:
    query = "how do I roll back? and who approves it? and who approves it?"
    assert part_queries("and who approves it?", query) == (query,)
