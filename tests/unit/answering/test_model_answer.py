"""When a language model is asked, and what it is asked of a question, over a fake index and with a scripted model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answering.find import ENGINE, find_answer
from core.answering.model_answer import NOT_FOUND, composed_answer, needs_model
from core.answering.model_exam import EXCERPTS, FULL, QUESTIONS, SITUATIONS, WRITES, Marks, examined, is_right, skill_of
from core.knowledge.retriever import Retriever
from core.model.answer import Answer, Excerpt
from core.model.badge import Evaluation
from core.model.conversation import Question
from core.model.errors import ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest
from core.model_calls.choice import NONE, Skill, weighed
from tests.benchmarks.simulated import SimulatedModel
from tests.cases import every_case
from tests.fakes.answering_script import choosing, prompt, tasks
from tests.fakes.language_model import ScriptedModel
from tests.unit.answering.pages import ASKED, REQUEST, question, retriever

__all__ = ["retriever"]  # the fixture

ABLE = Skill(1.0, writes=1.0, judges=1.0)
UNSURE = "How long is there to wait for a runner?"


async def written(
    asked: Question, retriever: Retriever, model: ScriptedModel, skill: Skill = ABLE
) -> tuple[Answer, Evaluation]:
    return await composed_answer(asked, await find_answer(asked, retriever), retriever, model, REQUEST, skill)


async def test_where_a_model_finds_no_answer_what_was_found_stands_with_a_word(retriever: Retriever) -> None:
    answer, _ = await written(question(UNSURE), retriever, choosing("zebra"))
    found, _ = await find_answer(question(UNSURE), retriever)
    assert answer == replace(found, note=NOT_FOUND, tentative=True)


async def test_a_follow_up_is_searched_for_as_it_was_restated(retriever: Retriever) -> None:
    model = choosing("shallows", question="how do I roll back in staging?")
    answer, _ = await written(question("no, in staging", ASKED), retriever, model)
    assert tasks(model)[:2] == ["Rewritten", ""]
    assert ASKED in prompt(model.requests[0])
    assert answer.citations[0].document_id == "docs/staging"


@pytest.mark.parametrize("restated", ["how is the canary E1234 drained on N7?", "how is a canary drained?"])
async def test_a_restated_question_that_gains_or_loses_a_name_is_not_used(retriever: Retriever, restated: str) -> None:
    model = choosing("slipway", question=restated)
    await written(question("and the canary of E1234?", ASKED), retriever, model)
    assert restated not in prompt(model.requests[1])


async def test_a_lone_question_in_another_language_is_searched_for_in_that_of_the_documents(
    retriever: Retriever,
) -> None:
    german = "Wie lange dauert es, einen Läufer zu leeren?"
    model = choosing(
        "45 minutes", question=german, english="How long does it take to drain a runner?", language="German"
    )
    answer, _ = await written(question(german), retriever, model)
    assert tasks(model)[:2] == ["Rewritten", ""]
    assert answer.citations[0].document_id == "docs/drain"


async def test_a_lone_question_in_the_language_of_the_documents_is_never_restated(retriever: Retriever) -> None:
    model = choosing("45 minutes")
    await written(question("how long does draining a runer take?"), retriever, model)
    assert "Rewritten" not in tasks(model)


async def test_the_end_of_a_long_conversation_is_what_a_question_is_restated_by(retriever: Retriever) -> None:
    model = choosing("slipway", question=ASKED)
    model.context = 1_400
    await written(question("and how?", "zebra " * 1_400, "roll back a canary"), retriever, model)
    assert "roll back a canary" in prompt(model.requests[0])
    assert "zebra" not in prompt(model.requests[0])


@pytest.mark.parametrize("failure", [ModelUnavailable("down"), PromptTooLong("too long")])
async def test_a_model_that_fails_raises(retriever: Retriever, failure: Exception) -> None:
    def fails(_: ModelRequest) -> str:
        raise failure

    with pytest.raises(type(failure)):
        await written(question(UNSURE), retriever, ScriptedModel(fails))


async def test_a_document_cannot_vote_for_itself_or_end_its_quotation(retriever: Retriever) -> None:
    model = choosing("gatekey")
    await written(question("what rotates the gateway, and who may reveal it?"), retriever, model)
    assert prompt(model.requests[0]).splitlines().count("=====") == 4


@given(st.lists(st.tuples(st.floats(0.001, 1.0), st.floats(0.001, 1.0)), min_size=2, max_size=9))
def test_a_model_that_is_worth_nothing_changes_nothing(pairs: list[tuple[float, float]]) -> None:
    told, before = ([each / sum(column) for each in column] for column in zip(*pairs, strict=True))
    assert weighed(told, before, 0.0) == pytest.approx(before)
    assert sum(weighed(told, before, 0.7)) == pytest.approx(1.0)


EXCERPT = Excerpt("It accepts bodies up to 256 KB.", "", 1)
CERTAIN = Answer("q", "?", (), (), ENGINE, excerpts=(EXCERPT,))


@pytest.mark.parametrize(
    ("found", "writer", "always"),
    [
        (CERTAIN, False, True),
        (replace(CERTAIN, tentative=True), True, True),
        (replace(CERTAIN, excerpts=()), True, True),
        (replace(CERTAIN, excerpts=(EXCERPT, EXCERPT)), True, True),
    ],
    ids=["certain", "hedged", "withheld", "of two parts"],
)
def test_model_is_asked_where_the_evidence_engine_is_not_certain(found: Answer, writer: bool, always: bool) -> None:
    asked = (needs_model(found, Skill(1.0, 1.0)), needs_model(found, Skill(1.0, 1.0, always=True)))
    assert asked == (writer, always)
    assert not needs_model(found, Skill(1.0, always=True)), "it has not proved that it writes"


SOURCES = {excerpt.name: number for number, excerpt in enumerate(EXCERPTS, start=1)}


def knowing(right: float = 1.0) -> SimulatedModel:
    return SimulatedModel((), right)


async def test_model_that_reads_passes_every_part_of_the_exam() -> None:
    assert await examined(knowing(), REQUEST) == FULL
    assert (skill := skill_of(FULL)) is not None
    assert (skill.right, skill.writes, skill.tools, skill.judges) == pytest.approx(
        (0.757, 0.806, 0.757, 0.806), abs=0.001
    )


@every_case("name", [*(excerpt.name for excerpt in EXCERPTS), NONE])
async def test_model_that_always_chooses_the_same_fails(name: str) -> None:
    always = ScriptedModel(odds=lambda *_: {name: 1.0})
    assert skill_of(await examined(always, REQUEST)) is None


def test_model_that_finds_but_does_not_write_chooses_owners_only() -> None:
    assert (skill := skill_of(Marks(FULL.find, WRITES - 1, 0))) is not None
    assert (skill.writes, skill.tools) == (0.0, 0.0)


@every_case(
    ("reply", "right"),
    [
        ("Run `ferry rollback SERVICE` [{}].", True),
        ("Run `ferry rollback SERVICE`.", False),
        ("Run `ferry rollback SERVICE --force` [{}].", False),
        ("The service is locked afterwards [{}].", False),
        ("NOT FOUND", False),
        ("", False),
    ],
)
def test_answer_of_the_exam_is_right_if_it_is_stated_and_supported(reply: str, right: bool) -> None:
    question, name, answer = QUESTIONS[0]
    assert is_right(reply.format(SOURCES[name]), question, answer) is right


def test_question_without_an_answer_is_right_only_if_the_model_says_so() -> None:
    question, name, answer = QUESTIONS[-1]
    assert name == NONE
    assert is_right("NOT FOUND", question, answer)
    assert not is_right("It is created with `ferry create` [1].", question, answer)


def test_exam_has_at_least_forty_items_of_three_kinds() -> None:
    assert FULL.find + FULL.write + FULL.tool >= 40
    assert len({question for question, *_ in (*QUESTIONS, *SITUATIONS)}) == len(QUESTIONS) + len(SITUATIONS)
