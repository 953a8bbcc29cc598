"""What a corpus teaches the dense encoder about itself."""

from __future__ import annotations

import numpy as np
import pytest

from core.knowledge.contrastive import MIN_PAIRS, Pair, pairs
from core.knowledge.document import Document
from core.knowledge.latent import DIMENSIONS, LatentModel
from core.knowledge.passages import passages_of
from core.knowledge.term_numbers import term_numbers

TOPICS = 150
FILLER = 300  # words that say nothing of a topic

PAGE = """Some words before any heading, which say what this page is about and for whom it was written.

## Draining a runner

Mark the runner as drained before you touch anything else. It finishes the job that it has and takes no other.

- Then stop it.

## Empty

## Caches

| a table | that is all there is below this heading, and long enough to be asked for, in all its breadth and length |
"""


def found(text: str) -> list[Pair]:
    return pairs(passages_of(Document("docs/a", "docs", "x", "Runners", text)), np.random.default_rng(1))


def test_a_heading_is_to_find_its_section_and_not_itself() -> None:
    by_heading = {pair.asked: pair.body for pair in found(PAGE)}
    assert "Mark the runner as drained" in by_heading["Draining a runner"]
    assert "Draining a runner" not in by_heading["Draining a runner"]
    assert "a table" in by_heading["Caches"]


def test_a_sentence_is_to_find_what_stood_around_it() -> None:
    (sentence,) = [pair for pair in found(PAGE) if pair.asked.startswith(("Mark", "It finishes"))]
    assert sentence.asked not in sentence.body
    assert "Then stop it." in sentence.body


def test_sentences_without_spaces_are_asked_too() -> None:
    text = "维护之前请先排空该节点上的所有任务并确认没有新任务进入。" * 4 + "\n\n- 然后停止它。"
    assert any("排空该节点" in pair.asked for pair in found(text))


@pytest.mark.parametrize("text", ["", "## Only a heading", "Short."])
def test_what_says_nothing_is_not_asked_for(text: str) -> None:
    assert found(text) == []


def corpus(seed: int, count: int) -> tuple[list[str], list[Pair]]:
    """Each topic has words that are asked and others that answer, among filler that is the same for all topics."""
    generator = np.random.default_rng(seed)
    texts, asked = list[str](), list[Pair]()
    for number in range(count):
        topic = number % TOPICS
        filler = " ".join(f"filler{word}" for word in generator.integers(0, FILLER, 30))
        question, body = f"asked{topic} filler{generator.integers(0, FILLER)}", f"answering{topic} {filler}"
        texts.append(f"{question} {body}")
        asked.append(Pair(question, body))
    return texts, asked


def found_first(model: LatentModel, asked: list[Pair]) -> float:
    """The share of questions whose own body is the nearest."""
    bodies = np.stack([model.encode_passage(term_numbers(pair.body)) for pair in asked])
    nearest = [int(np.argmax(bodies @ model.encode_query(pair.asked)[0])) for pair in asked]
    return float(np.mean([spot == number for number, spot in enumerate(nearest)]))


def test_training_finds_what_the_decomposition_alone_does_not() -> None:
    texts, asked = corpus(1, MIN_PAIRS)
    _, unseen = corpus(2, TOPICS)
    families = ["x"] * len(texts)
    before, after = LatentModel.fitted(texts, families), LatentModel.fitted(texts, families, asked)
    assert (before.trained, after.trained) == (False, True)
    assert found_first(after, unseen) > found_first(before, unseen) + 0.1


def test_a_trained_model_gives_vectors_of_unit_length_and_represents_every_known_word() -> None:
    texts, asked = corpus(1, MIN_PAIRS)
    model = LatentModel.fitted(texts, ["x"] * len(texts), asked)
    for vector in (model.encode_passage(term_numbers(texts[0])), model.encode_query(asked[0].asked)[0]):
        assert vector.shape == (DIMENSIONS,)
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)
    assert model.encode_query(asked[0].asked)[1] == 1.0
    assert model.encode_query("zebra")[1] == 0.0
    assert not model.encode_passage(term_numbers("zebra")).any()


def test_training_is_deterministic() -> None:
    texts, asked = corpus(1, MIN_PAIRS)
    first, second = (LatentModel.fitted(texts, ["x"] * len(texts), asked) for _ in range(2))
    np.testing.assert_array_equal(first.components, second.components)


def test_a_corpus_with_little_to_ask_is_not_trained_on() -> None:
    texts, asked = corpus(1, MIN_PAIRS - 1)
    assert not LatentModel.fitted(texts, ["x"] * len(texts), asked).trained
