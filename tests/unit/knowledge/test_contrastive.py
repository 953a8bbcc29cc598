"""What a corpus teaches the dense encoder about itself."""

from __future__ import annotations

import numpy as np
import pytest

from core.knowledge.latent import DIMENSIONS, MIN_PAIRS, LatentModel
from core.knowledge.sections import Section
from core.knowledge.term_numbers import term_numbers

TOPICS = 150
FILLER = 300  # words that say nothing of a topic


def corpus(seed: int, count: int) -> list[Section]:
    """Each topic has words that are asked and others that answer, among filler that is the same for all topics."""
    generator = np.random.default_rng(seed)
    sections = list[Section]()
    for number in range(count):
        topic = number % TOPICS
        filler = " ".join(f"filler{word}" for word in generator.integers(0, FILLER, 30))
        heading = f"asked{topic} filler{generator.integers(0, FILLER)}"
        sections.append(Section(f"{heading} answering{topic} {filler}", heading, ()))
    return sections


def fitted(sections: list[Section], *, training: bool = True) -> LatentModel:
    texts = [section.text for section in sections]
    return LatentModel.fitted(texts, ["x"] * len(texts), sections if training else ())


def found_first(model: LatentModel, sections: list[Section]) -> float:
    """The share of headings whose own section is the nearest, once they are taken out of it."""
    bodies = [section.text.removeprefix(section.heading) for section in sections]
    vectors = np.stack([model.encode_passage(term_numbers(body)) for body in bodies])
    nearest = [int(np.argmax(vectors @ model.encode_query(section.heading)[0])) for section in sections]
    return float(np.mean([spot == number for number, spot in enumerate(nearest)]))


def test_training_finds_what_the_decomposition_alone_does_not() -> None:
    seen, unseen = corpus(1, MIN_PAIRS), corpus(2, TOPICS)
    before, after = fitted(seen, training=False), fitted(seen)
    assert (before.trained, after.trained) == (False, True)
    assert found_first(before, unseen) < 0.1
    assert found_first(after, unseen) > 0.6  # 0.55 where a heading stays in the text that it is to find


def test_a_trained_model_gives_vectors_of_unit_length_and_represents_every_known_word() -> None:
    sections = corpus(1, MIN_PAIRS)
    model = fitted(sections)
    for vector in (model.encode_passage(term_numbers(sections[0].text)), model.encode_query(sections[0].heading)[0]):
        assert vector.shape == (DIMENSIONS,)
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)
    assert model.encode_query(sections[0].heading)[1] == 1.0
    assert model.encode_query("zebra")[1] == 0.0
    assert not model.encode_passage(term_numbers("zebra")).any()


def test_training_is_deterministic() -> None:
    first, second = (fitted(corpus(1, MIN_PAIRS)) for _ in range(2))
    np.testing.assert_array_equal(first.components, second.components)


def test_a_corpus_with_little_to_ask_is_not_trained_on() -> None:
    assert not fitted(corpus(1, MIN_PAIRS - 1)).trained
