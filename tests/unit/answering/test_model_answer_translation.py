"""A question in another language than the documents' is answered in its own by the second engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.answering.model_answer import TRANSLATED, model_answer
from core.knowledge.retriever import Retriever
from core.model.language_model import ModelRequest
from tests.fakes.answering_script import AnsweringScript, agreeing, prompt, task, tasks
from tests.fakes.language_model import ScriptedModel
from tests.unit.answering.pages import ASKED, COMMAND, DURATION, REQUEST, composing, question, retriever

__all__ = ["retriever"]  # the fixture

GERMAN = "Wie mache ich einen Canary rückgängig?"


def german(*translations: str) -> AnsweringScript:
    script = composing((COMMAND, "slipway"), (DURATION, "90"))
    return replace(script, question=GERMAN, english=ASKED, language="German", translations=translations)


async def test_an_english_question_that_was_asked_alone_is_searched_for_as_it_is(retriever: Retriever) -> None:
    model = agreeing(AnsweringScript(question=ASKED, english=ASKED))
    answer, _ = await model_answer(question("how do I roll back a flux capacitor?"), retriever, model, REQUEST)
    assert tasks(model)[0] == "Rewritten"
    assert ASKED not in " ".join(prompt(request) for request in model.requests)
    assert answer.note == ""


async def test_a_question_in_the_language_of_the_documents_is_not_translated(retriever: Retriever) -> None:
    script = AnsweringScript(question="drydock runner drain", english="empty the machine", language="Dutch")
    model = agreeing(script)
    answer, _ = await model_answer(question("drydock runner drain?", ASKED), retriever, model, REQUEST)
    assert answer.citations[0].document_id == "docs/drain"
    assert "Translated" not in tasks(model)


async def test_a_question_in_another_language_is_answered_in_it(retriever: Retriever) -> None:
    translations = ("Führe `slipway rollback SERVICE` aus.", "Der Verkehr kehrt binnen 90 Sekunden zurück.")
    model = agreeing(german(*translations))
    answer, _ = await model_answer(question(GERMAN), retriever, model, REQUEST)
    assert tuple(sentence.text for sentence in answer.sentences) == translations
    assert answer.citations[0].quote == COMMAND
    assert answer.note == TRANSLATED
    assert "German" in prompt(next(request for request in model.requests if task(request) == "Translated"))


@pytest.mark.parametrize(
    ("translations", "shown"),
    [
        (
            ("Führe `rm -rf SERVICE` aus.", "Der Verkehr kehrt binnen 90 Sekunden zurück."),
            (COMMAND, "Der Verkehr kehrt binnen 90 Sekunden zurück."),
        ),
        (
            ("Führe `slipway rollback SERVICE` aus.", "Der Verkehr kehrt binnen 30 Sekunden zurück."),
            ("Führe `slipway rollback SERVICE` aus.", DURATION),
        ),
        (("Führe `slipway rollback SERVICE` aus.",), (COMMAND, DURATION)),
        ((), (COMMAND, DURATION)),
    ],
)
async def test_a_translation_that_changes_a_fact_is_not_shown(
    retriever: Retriever, translations: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    answer, _ = await model_answer(question(GERMAN), retriever, agreeing(german(*translations)), REQUEST)
    assert tuple(sentence.text for sentence in answer.sentences) == shown


async def test_a_translation_that_the_model_itself_denies_is_not_shown(retriever: Retriever) -> None:
    def odds(request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        return dict(zip(choices, (0.1, 0.9) if "Its translation" in prompt(request) else (0.9, 0.1), strict=True))

    script = german("Führe niemals `slipway rollback SERVICE` aus.", "Der Verkehr kehrt nach 90 Sekunden nie zurück.")
    answer, _ = await model_answer(question(GERMAN), retriever, ScriptedModel(script, odds), REQUEST)
    assert tuple(sentence.text for sentence in answer.sentences) == (COMMAND, DURATION)
    assert answer.note == ""
