"""Whatever a model composes, what is shown of it stands in its citation."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from core.answering.model_check import checked
from core.answering.model_evidence import gathered
from core.answering.model_text import literals
from core.knowledge.passages import passages_of
from core.knowledge.retriever import RankedPassage
from core.knowledge.terms import terms
from core.model.document import Document
from core.model.language_model import ModelRequest
from core.model_calls.prompts.answering import Composed, ComposedSentence
from tests.fakes.answering_script import AnsweringScript, agreeing

TEXTS = (
    "# Roll back a canary\n\nRun `slipway rollback SERVICE`. The traffic returns within 90 seconds.",
    "# Drain a runner\n\nRun `drydock runner drain NAME`, see https://wiki.example/drain, and wait for 45 minutes.",
)
PASSAGES = [
    passage
    for number, text in enumerate(TEXTS)
    for passage in passages_of(Document(f"d/{number}", "d", "d", text.splitlines()[0][2:], text))
]
EVIDENCE = gathered([RankedPassage(passage, 1.0, 0.5, 1.0) for passage in PASSAGES])
HELD = set(terms("\n".join(TEXTS)))

WORDS = st.sampled_from(
    [
        *"Run run the traffic returns within seconds minutes and wait for a runner canary".split(),
        *["90", "45", "9", "`slipway rollback SERVICE`", "`rm -rf /`", "drydock", "https://wiki.example/drain", "NAME"],
        *["https://evil.example", "evil.example", "[x](https://evil.example)", "[1]", "@channel", "<!here>", "<@U1>"],
        *["I am sure", "100 % certain", "**bold**", "`", "\n# ", "●●●", "\u202e", "never"],
    ]
)
SENTENCES = st.builds(
    ComposedSentence,
    st.lists(WORDS, max_size=9).map(" ".join),
    st.lists(st.integers(-1, 9), max_size=4).map(tuple),
)


@settings(max_examples=150)
@given(st.lists(SENTENCES, max_size=5).map(tuple))
def test_nothing_is_shown_that_no_citation_says(sentences: tuple[ComposedSentence, ...]) -> None:
    kept = asyncio.run(checked(agreeing(AnsweringScript()), ModelRequest(()), Composed(sentences), EVIDENCE))
    for item in kept:
        shown, source = item.sentence.text, "\n".join(TEXTS)
        assert item.sentence.citations
        assert all(number in EVIDENCE.statements for number in item.sentence.citations)
        assert all(literal in source.lower() for literal in literals(shown))
        assert not any(forged in shown for forged in ("evil", "rm -rf", "@", "<", "●", "](", "\n", "**", "\u202e"))
        assert not any(claim in shown for claim in ("I am sure", "certain"))
        assert len(set(terms(shown)) & HELD) >= 0.9 * len(set(terms(shown)))


@given(st.integers(0, 3))
def test_a_sentence_is_shown_once(times: int) -> None:
    sentence = ComposedSentence("The traffic returns within 90 seconds.", tuple(EVIDENCE.statements)[1:2])
    kept = asyncio.run(checked(agreeing(AnsweringScript()), ModelRequest(()), Composed((sentence,) * times), EVIDENCE))
    assert len(kept) == min(times, 1)
