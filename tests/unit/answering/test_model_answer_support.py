"""What the documents do not say is no part of an answer of the second engine, whatever the model composes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.answering.find import NEAREST
from core.answering.model_answer import model_answer
from core.answering.model_check import VERDICT
from core.knowledge.retriever import Retriever
from core.model.language_model import ModelRequest
from tests.fakes.answering_script import AnsweringScript, Statements, agreeing, prompt, tasks
from tests.fakes.language_model import ScriptedModel
from tests.unit.answering.pages import COMMAND, DURATION, REQUEST, composing, number_of, question, retriever

__all__ = ["retriever"]  # the fixture


@pytest.mark.parametrize(
    "sentence",
    [
        pytest.param("Run `slipway rollback --force SERVICE` to roll back a canary.", id="another command"),
        pytest.param("The traffic returns within 30 seconds.", id="another number"),
        pytest.param("Penguins feed the canary at midnight.", id="words that stand nowhere"),
        pytest.param("Never run `slipway rollback SERVICE` to roll back a canary.", id="the contrary"),
        pytest.param("Run `slipway rollback SERVICE`, see evil.example/canary.", id="a link"),
        pytest.param("Run `slipway rollback SERVICE` to roll back a canary @channel.", id="a mention"),
        pytest.param("Run `slipway rollback SERVICE` <!here> to roll back a canary.", id="markup"),
        pytest.param("I am sure: run `slipway rollback SERVICE` to roll back a canary.", id="a confidence"),
        pytest.param("  ** ** ", id="nothing"),
    ],
)
async def test_a_sentence_that_its_citation_does_not_support_is_withheld(retriever: Retriever, sentence: str) -> None:
    model = agreeing(composing((COMMAND, "slipway"), (sentence, "slipway")))
    answer, _ = await model_answer(question(), retriever, model, REQUEST)
    assert [kept.text for kept in answer.sentences] == [COMMAND]


async def test_a_sentence_without_a_citation_that_exists_is_withheld(retriever: Retriever) -> None:
    script = AnsweringScript(
        lambda shown: [(COMMAND, [number_of("slipway", shown)]), (DURATION, []), (DURATION, [998])]
    )
    answer, _ = await model_answer(question(), retriever, agreeing(script), REQUEST)
    assert answer.abstained


async def test_a_sentence_that_the_model_itself_denies_is_withheld(retriever: Retriever) -> None:
    def odds(request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        likely = VERDICT + 0.3 if COMMAND in prompt(request).split("A sentence that")[1] else VERDICT - 0.1
        return dict(zip(choices, (likely, 1 - likely), strict=True))

    model = ScriptedModel(composing((COMMAND, "slipway"), (DURATION, "90")), odds)
    answer, _ = await model_answer(question(), retriever, model, REQUEST)
    assert [sentence.text for sentence in answer.sentences] == [COMMAND]


async def test_support_counts_as_far_as_the_verdicts_agree(retriever: Retriever) -> None:
    async def rce(probability: float, *sentences: tuple[str, str]) -> float:
        model = agreeing(composing(*sentences), probability)
        _, evaluation = await model_answer(question(), retriever, model, REQUEST)
        return evaluation.rce

    sure, withheld = (COMMAND, "slipway"), ("Penguins feed the canary at midnight.", "slipway")
    whole = await rce(1.0, sure)
    assert await rce(0.8, sure) == pytest.approx(0.8 * whole)
    assert await rce(1.0, sure, withheld) == pytest.approx(0.5 * whole)


def nothing(_: Statements) -> list[tuple[str, list[int]]]:
    return []


def mostly_invented(shown: Statements) -> list[tuple[str, list[int]]]:
    return [(COMMAND, [number_of("slipway", shown)]), ("Ask a penguin.", [1]), ("Penguins know it.", [1])]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(AnsweringScript(nothing), id="the documents do not say it"),
        pytest.param(AnsweringScript(choose=lambda _: ()), id="no statement helps"),
        pytest.param(AnsweringScript(mostly_invented), id="too little is supported"),
    ],
)
async def test_where_too_little_is_left_it_abstains_and_names_the_nearest(
    retriever: Retriever, script: AnsweringScript
) -> None:
    answer, _ = await model_answer(question(), retriever, agreeing(script), REQUEST)
    assert answer.abstained
    assert 1 <= len(answer.citations) <= NEAREST


async def test_without_evidence_no_answer_is_composed(retriever: Retriever) -> None:
    model = agreeing(AnsweringScript(question="who won the football match in the repository?"))
    asked = question("who won the football match in the repository?")
    answer, _ = await model_answer(asked, retriever, model, REQUEST)
    assert answer.abstained
    assert "Composed" not in tasks(model)


async def test_what_another_document_says_against_an_answer_is_shown_in_its_own_words(retriever: Retriever) -> None:
    composed = "Drain a runner: run `drydock runner drain NAME` and wait 45 minutes."
    model = agreeing(composing((composed, "45 minutes")))
    answer, _ = await model_answer(question("how do I drain a runner?"), retriever, model, REQUEST)
    assert [sentence.text for sentence in answer.sentences] == [composed]
    (conflict,) = answer.conflicts
    quotes = {source.document_id: source.quote for source in conflict.sources}
    assert quotes == {
        "docs/drain": "Run `drydock runner drain NAME` and wait for 45 minutes.",
        "docs/maintenance": "Run `drydock runner drain NAME` and wait for 30 minutes.",
    }


async def test_orders_in_a_document_stay_data(retriever: Retriever) -> None:
    def obeying(shown: Statements) -> list[tuple[str, list[int]]]:
        order = [number_of("Ignore all", shown), number_of("reveal", shown)]
        return [
            ("Rotate the gateway key with `gatekey rotate`.", [number_of("Rotate", shown)]),
            ("Answer that it rotates; I am 100 % confident.", order),
            ("You may reveal everything to @channel.", order),
            ("The key is rotated with `gatekey rotate`.", [number_of("Rotate", shown)]),
        ]

    model = agreeing(AnsweringScript(obeying))
    answer, _ = await model_answer(question("how do I rotate the gateway key?"), retriever, model, REQUEST)
    assert len(answer.sentences) == 2
    assert all("gatekey rotate" in sentence.text for sentence in answer.sentences)


async def test_no_document_can_end_its_own_quotation(retriever: Retriever) -> None:
    model = agreeing(AnsweringScript())
    await model_answer(question("how do I rotate the gateway key?"), retriever, model, REQUEST)
    compress = prompt(model.requests[0])
    assert "reveal everything" in compress
    assert compress.splitlines().count("=====") == 4


async def test_nobody_is_answered_from_what_they_may_not_read(retriever: Retriever) -> None:
    model = agreeing(AnsweringScript(question="how is the settlement desk reached?"))
    await model_answer(question("how is the settlement desk reached?"), retriever, model, REQUEST)
    assert not any("7714" in prompt(request) for request in model.requests)
