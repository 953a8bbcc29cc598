"""The second engine from end to end, over a fake index and a scripted model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.answering.certainty import answer_threshold
from core.answering.model_answer import model_answer
from core.knowledge.retriever import Retriever
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest
from tests.fakes.answering_script import AnsweringScript, agreeing, prompt, statements, tasks
from tests.fakes.language_model import ScriptedModel
from tests.unit.answering.pages import ASKED, COMMAND, DURATION, REQUEST, composing, number_of, question, retriever

__all__ = ["retriever"]  # the fixture


async def test_a_composed_answer_cites_the_section_that_says_each_sentence(retriever: Retriever) -> None:
    model = agreeing(
        composing((f"To roll back a canary, run {'`slipway rollback SERVICE`'}.", "slipway"), (DURATION, "90"))
    )
    answer, evaluation = await model_answer(question(), retriever, model, REQUEST)
    assert [sentence.text for sentence in answer.sentences] == [
        "To roll back a canary, run `slipway rollback SERVICE`.",
        DURATION,
    ]
    assert {sentence.citations for sentence in answer.sentences} == {(1,)}
    (citation,) = answer.citations
    assert (citation.document_id, citation.quote) == ("docs/rollback", COMMAND)
    assert (answer.engine, answer.note, answer.question_id) == (model.name, "", "q-1")
    assert 0 < evaluation.rce < 0.9
    assert answer_threshold() <= evaluation.coe <= 1


async def test_a_question_asked_alone_in_known_words_is_not_rewritten(retriever: Retriever) -> None:
    model = agreeing(AnsweringScript())
    await model_answer(question(), retriever, model, REQUEST)
    assert tasks(model) == ["Chosen", "Composed", ""]


async def test_every_request_says_for_whom_and_by_when(retriever: Retriever) -> None:
    model = agreeing(AnsweringScript())
    await model_answer(question(), retriever, model, REQUEST)
    assert {(request.requester, request.deadline) for request in model.requests} == {("slack:C1", 7.0)}


async def test_a_follow_up_is_searched_for_as_it_was_rewritten(retriever: Retriever) -> None:
    rewritten = "how do I roll back in staging?"
    model = agreeing(AnsweringScript(question=rewritten))
    answer, _ = await model_answer(question("no, in staging", ASKED), retriever, model, REQUEST)
    assert tasks(model)[0] == "Rewritten"
    assert ASKED in prompt(model.requests[0])
    assert answer.citations[0].document_id == "docs/staging"
    assert rewritten in prompt(model.requests[1])


@pytest.mark.parametrize("rewritten", ["how is the canary E1234 drained on N7?", "how is a canary drained?"])
async def test_a_rewritten_question_that_gains_or_loses_a_name_is_not_used(
    retriever: Retriever, rewritten: str
) -> None:
    model = agreeing(AnsweringScript(question=rewritten))
    await model_answer(question("and the canary of E1234?", ASKED), retriever, model, REQUEST)
    assert not any(rewritten in prompt(request) for request in model.requests[1:])


async def test_the_end_of_a_long_conversation_is_what_a_question_is_rewritten_by(retriever: Retriever) -> None:
    model = agreeing(AnsweringScript(question=ASKED))
    model.context = 1_300
    await model_answer(question("and how?", "zebra " * 900, "roll back a canary"), retriever, model, REQUEST)
    assert "roll back a canary" in prompt(model.requests[0])
    assert "zebra" not in prompt(model.requests[0])


async def test_compression_keeps_statements_and_nothing_else(retriever: Retriever) -> None:
    script = AnsweringScript(choose=lambda shown: [number_of("slipway", shown), 900])
    model = agreeing(script)
    await model_answer(question(), retriever, model, REQUEST)
    chosen, composed, _ = model.requests
    assert len(statements(chosen)) > 1
    assert list(statements(composed).values()) == [COMMAND]


async def test_the_best_passages_stand_at_the_ends(retriever: Retriever) -> None:
    model = agreeing(AnsweringScript())
    await model_answer(question("how do I roll back a canary or drain a runner?"), retriever, model, REQUEST)
    numbers = list(statements(model.requests[0]))
    assert numbers[0] == 1
    assert numbers != sorted(numbers)
    assert max(numbers) not in {numbers[0], numbers[-1]}


async def test_composing_and_checking_share_the_prompt_up_to_the_end_of_the_documents(retriever: Retriever) -> None:
    model = agreeing(composing((COMMAND, "slipway"), (DURATION, "90")))
    await model_answer(question(), retriever, model, REQUEST)
    _, *sharing = model.requests
    assert len(sharing) == 3
    assert len({request.messages[0] for request in model.requests}) == 1
    shared, _, _ = prompt(sharing[0]).partition("The question:")
    assert all(text in shared for text in (COMMAND, DURATION))
    assert all(prompt(request).startswith(shared) for request in sharing)


def down(_: ModelRequest) -> str:
    raise ModelUnavailable("The model is down.")


@pytest.mark.parametrize(
    ("script", "context", "error"),
    [
        pytest.param(down, 8_192, ModelUnavailable, id="down"),
        pytest.param(lambda _: "Certainly! Here is", 8_192, InvalidReply, id="no JSON"),
        pytest.param(lambda _: '{"statements": ["1"]}', 8_192, InvalidReply, id="another form"),
        pytest.param(
            AnsweringScript(choose=lambda _: (900, -1)), 8_192, InvalidReply, id="numbers that it was not shown"
        ),
        pytest.param(AnsweringScript(), 220, PromptTooLong, id="too small a context"),
    ],
)
async def test_a_model_that_fails_is_said_to_have_failed(
    retriever: Retriever, script: Callable[[ModelRequest], str], context: int, error: type[Exception]
) -> None:
    model = ScriptedModel(script, context=context)
    with pytest.raises(error):
        await model_answer(question(), retriever, model, REQUEST)


async def test_in_a_small_context_the_best_sections_are_read(retriever: Retriever) -> None:
    model = agreeing(AnsweringScript())
    model.context = 1_250
    answer, _ = await model_answer(question(), retriever, model, REQUEST)
    assert answer.citations[0].document_id == "docs/rollback"
