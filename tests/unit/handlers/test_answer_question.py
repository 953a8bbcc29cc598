from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from core.answering.certainty import VERSION
from core.answering.find import ENGINE
from core.answering.model_answer import COMPOSED_VERSION, NOT_FOUND
from core.answering.model_exam import Marks
from core.knowledge.retriever import Retriever
from core.model.badge import Estimator, PredictionKind
from core.model.conversation import MessageReference, Place, Platform, Speaker, Turn
from core.model.document import Document
from core.model.errors import ChatUnavailable, InvalidReply, ModelUnavailable, Undeliverable
from core.model.language_model import ModelReply, ModelRequest, OnText, Urgency, ignore_text
from core.model.messages import AnswerMessage, Message
from core.model_calls.choice import Use
from core.model_calls.metered_model import QuestionLimits
from handlers.common.examine_model import ExaminedModel
from handlers.common.post_message import Poster
from handlers.knowledge.ingest_knowledge import ingest_knowledge
from handlers.questions.answer_question import (
    CUT,
    LACKS_THREAD,
    READS_ON,
    WITHOUT_MODEL,
    answer_question,
    prepare_answer,
)
from tests.fakes.answering import ROLLBACK, THREAD, Handbook, answered, last, question, retriever
from tests.fakes.answering_script import choosing
from tests.fakes.calibrators import calibrator
from tests.fakes.clock import FakeClock
from tests.fakes.language_model import ScriptedModel, passed
from tests.fakes.messenger import Crash, RecordingMessenger, Trouble
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

__all__ = ["retriever"]  # the fixture


async def test_an_answer_is_posted_with_its_citation_and_its_badge(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("How do I roll back a canary?"), retriever, store, chat)
    answer = last(chat).answer
    assert answer.citations[0].document_id == "handbook/canary"
    assert "slip rollback" in answer.text
    assert answer.badge is not None
    assert answer.badge.probability is None


async def test_the_claim_is_stored_before_anybody_sees_it(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    chat.trouble.append(Trouble.CRASH_BEFORE)
    with pytest.raises(Crash):
        await answered(question("How do I roll back a canary?"), retriever, store, chat)
    (prediction,) = store.predictions.by_id.values()
    assert (prediction.kind, prediction.subject) == (PredictionKind.ANSWER, "q1")


async def test_an_abstention_makes_no_claim(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("What is the phone number of the zoo?"), retriever, store, chat)
    assert last(chat).answer.abstained
    assert last(chat).answer.badge is None
    assert store.predictions.by_id == {}


async def test_what_the_place_may_not_read_is_not_answered_from(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    asked = "Where is the master key kept?"
    await answered(question(asked, "q1"), retriever, store, chat)
    assert "heliotrope" not in repr(last(chat))
    await answered(question(asked, "q2", "channel:vault"), retriever, store, chat)
    assert "heliotrope" in repr(last(chat))


async def test_what_was_said_is_remembered_in_order(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("How do I roll back a canary?"), retriever, store, chat)
    first, second = await store.conversations.history(THREAD, 8)
    assert first == Turn(Speaker.PERSON, "How do I roll back a canary?")
    assert second.speaker is Speaker.PLUMBLINE
    assert "slip rollback" in second.text


async def test_a_follow_up_is_understood_in_its_thread(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("When does the deployment freeze begin?", "q1"), retriever, store, chat)
    await answered(question("and when does it end?", "q2"), retriever, store, chat)
    assert last(chat).answer.citations[0].document_id == "handbook/freeze"


@pytest.mark.parametrize("text", ["and how do I roll back a canary?", "and when does it end?"])
async def test_an_answer_to_a_follow_up_without_its_thread_is_hedged_and_says_what_was_not_read(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, text: str
) -> None:
    await answered(replace(question(text), lacks_thread=True), retriever, store, chat)
    answer = last(chat).answer
    assert answer.tentative or answer.abstained
    assert LACKS_THREAD in answer.note


async def test_a_follow_up_with_the_same_answer_is_answered_whole_because_another_fact_of_it_may_be_asked_for(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("How do I roll back a canary?", "q1"), retriever, store, chat)
    first = last(chat).answer
    await answered(question("and how do I roll back a canary in staging?", "q2"), retriever, store, chat)
    again = last(chat).answer
    assert (again.lead, again.citations[0].document_id) == ("", first.citations[0].document_id)
    assert "slip rollback" in again.text
    assert again.text in (await store.conversations.history(THREAD, 8))[-1].text, "what follows is read in its light"


@pytest.mark.parametrize("trouble", Trouble)
async def test_a_step_that_runs_twice_answers_once(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, trouble: Trouble
) -> None:
    asked = question("How do I roll back a canary?")
    chat.trouble.append(trouble)
    with pytest.raises((ChatUnavailable, Crash)):
        await answered(asked, retriever, store, chat)
    for _ in range(2):
        await answered(asked, retriever, store, chat)
    assert len(chat.standing) == len(store.predictions.by_id) == 1
    assert len(store.conversations.turns) == 2


LASTS = "How long is the shelf index in the freeze?"  # tentative: the shelf first, then the freeze


async def test_what_a_language_model_writes_is_shown_in_its_name(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question(LASTS), retriever, store, chat, choosing("6 January"))
    answer = last(chat).answer
    assert answer.citations[0].document_id == "handbook/freeze"
    assert "6 January" in answer.text
    assert (answer.engine, answer.note) == ("scripted", "")
    (prediction,) = store.predictions.by_id.values()
    assert (prediction.engine, prediction.estimator_version) == ("scripted", COMPOSED_VERSION)


async def test_an_excerpt_is_found_by_a_model_where_the_evidence_engine_withholds_it(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("How long does the traffic take?"), retriever, store, chat, choosing("90 seconds"))
    assert "90 seconds" in last(chat).answer.text


async def test_the_model_is_asked_at_once_and_for_the_channel_of_the_question(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = choosing("6 January")
    await answered(question(LASTS), retriever, store, chat, model)
    assert {(request.requester, request.urgency) for request in model.requests} == {("slack:C0ASK", Urgency.PERSON)}


async def test_no_model_is_asked_where_the_answer_is_certain(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = choosing("6 January")
    await answered(question(ROLLBACK), retriever, store, chat, model)
    assert "slip rollback" in last(chat).answer.text
    assert (model.requests, last(chat).answer.engine) == ([], ENGINE)


def down(_: ModelRequest) -> str:
    raise ModelUnavailable("The model is down.")


def invalid(_: ModelRequest) -> str:
    raise InvalidReply("I would love to help!")


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(ScriptedModel(down), id="down"),
        pytest.param(ScriptedModel(invalid), id="not in the form asked for"),
    ],
)
async def test_without_a_usable_reply_the_evidence_engine_answers_and_says_so(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, model: ScriptedModel
) -> None:
    await answered(question(LASTS), retriever, store, chat, model)
    answer = last(chat).answer
    assert answer.citations[0].document_id == "handbook/shelf"
    assert (answer.engine, answer.note) == (ENGINE, WITHOUT_MODEL)
    (prediction,) = store.predictions.by_id.values()
    assert (prediction.engine, prediction.estimator_version) == (ENGINE, VERSION)


class Hanging(ScriptedModel):
    """Writes when it `may`."""

    def __init__(self) -> None:
        chooser = choosing("6 January")
        super().__init__(chooser.script, chooser.odds)
        self.may = asyncio.Event()

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        await self.may.wait()
        return await super().generate(request, on_text)


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QUOTES_AFTER", "LOOKS_EVERY"):
        monkeypatch.setattr(f"handlers.questions.answer_question.{name}", 0.001)


SHORT = QuestionLimits(seconds=0.3)


async def test_what_was_found_is_shown_at_once_and_the_choice_takes_its_place(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch)
    model = Hanging()
    answering = asyncio.create_task(answered(question(LASTS), retriever, store, chat, model))
    async with asyncio.timeout(5):
        while not store.conversations.turns:  # noqa: ASYNC110 -- nothing tells it
            await asyncio.sleep(0.01)
    quoted = last(chat).answer
    assert (quoted.citations[0].document_id, quoted.note) == ("handbook/shelf", READS_ON)
    assert (quoted.badge, quoted.prediction_id) == (None, None), "nobody judges what may still change"
    model.may.set()
    await answering
    (final,) = chat.standing.values()
    assert isinstance(final, AnswerMessage)
    assert final.answer.citations[0].document_id == "handbook/freeze"
    shown = [each.entry.documents[0] for each in store.audit.entries]
    assert shown == ["handbook/shelf", "handbook/freeze", "handbook/freeze"], (
        "what was found, the draft, and the answer"
    )
    assert len(store.predictions.by_id) == 1
    assert [turn.text for turn in await store.conversations.history(THREAD, 8)] == [LASTS, final.answer.text]


async def test_a_model_that_hangs_changes_nothing_and_is_not_waited_for(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answered(question(LASTS, "q1"), retriever, InMemoryStore(), without := RecordingMessenger())
    impatient(monkeypatch)
    await answered(question(LASTS, "q1"), retriever, store, chat, Hanging(), limits=SHORT)
    (shown,) = chat.standing.values()
    assert isinstance(shown, AnswerMessage)
    assert shown.answer == replace(last(without).answer, note=WITHOUT_MODEL)
    assert len(chat.posted) == 1, "at once; the note came with an edit"


async def test_what_a_model_wrote_before_it_hung_or_died_stays(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch)
    said = "Rebuild the shelf index with `shelf reindex --all`."
    for hangs in (True, False):

        async def generate(request: ModelRequest, on_text: OnText = ignore_text, *, hangs: bool = hangs) -> ModelReply:
            before = request.messages[-1].text.partition(said)[0]
            on_text(f"{said[:-1]} [{before.rpartition(chr(10) + '[')[2].partition(']')[0]}]. And then")
            if hangs:
                await asyncio.Event().wait()
            raise ModelUnavailable("The model died.")

        model, store, chat = ScriptedModel(), InMemoryStore(), RecordingMessenger()
        model.generate = generate
        examined = await passed(model, writes=True)
        poster = Poster(store, {Platform.SLACK: chat})
        asked = question("How long does the shelf index last?")
        await answer_question(
            asked,
            some_ports(
                retriever=retriever, store=store, poster=poster, clock=FakeClock(), examined=examined, question=SHORT
            ),
        )
        (shown,) = chat.standing.values()
        assert isinstance(shown, AnswerMessage)
        answer = shown.answer
        assert ([each.text for each in answer.sentences], answer.note) == ([said], CUT)
        assert answer.tentative


async def test_a_model_that_failed_its_exam_or_has_not_ended_it_is_not_asked(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question(LASTS), retriever, store, chat, failed := choosing("6 January"), Marks(3, 3, 0))
    assert (failed.requests, last(chat).answer.engine) == ([], ENGINE)
    examined = ExaminedModel(Hanging())
    answer = await prepare_answer(
        question(LASTS, "q2"), some_ports(retriever=retriever, store=store, clock=FakeClock(), examined=examined)
    )
    assert answer.engine == ENGINE
    await examined.close()


@pytest.mark.parametrize("seed", range(5))
async def test_a_model_that_chooses_at_random_is_not_asked_after_its_exam(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, seed: int
) -> None:
    draw = random.Random(seed)
    model = ScriptedModel(odds=lambda _, choices: {choice: draw.random() ** 8 for choice in choices})
    kept: list[Marks] = []
    examined = ExaminedModel(model, save=kept.append)
    assert examined.skill(Use.ANSWERS) is None
    async with asyncio.timeout(5):
        while not kept:  # noqa: ASYNC110 -- nothing tells it
            await asyncio.sleep(0)
    asked = len(model.requests)
    answer = await prepare_answer(
        question(LASTS), some_ports(retriever=retriever, store=store, clock=FakeClock(), examined=examined)
    )
    assert (answer.engine, len(model.requests)) == (ENGINE, asked)
    assert answer.citations[0].document_id == "handbook/shelf"


async def test_the_engine_whose_answers_people_found_right_more_often_is_shown(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await store.predictions.adopt(Estimator(PredictionKind.ANSWER, ENGINE, VERSION), calibrator(0.9, 0.8))
    await answered(question(LASTS), retriever, store, chat, choosing("6 January"))
    assert last(chat).answer.engine == "scripted", "of one of the two, too few verdicts are known"
    await store.predictions.adopt(Estimator(PredictionKind.ANSWER, "scripted", COMPOSED_VERSION), calibrator(0.9, 0.3))
    await answered(question(LASTS, "q2"), retriever, store, chat, choosing("6 January"))
    assert last(chat).answer.engine == ENGINE


@pytest.mark.parametrize(("word", "note", "probability"), [("", "", 0.95), ("zebra", NOT_FOUND, None)])
async def test_the_confidence_of_an_answer_is_not_that_of_one_in_which_a_model_found_none(
    retriever: Retriever,
    store: InMemoryStore,
    chat: RecordingMessenger,
    word: str,
    note: str,
    probability: float | None,
) -> None:
    await store.predictions.adopt(Estimator(PredictionKind.ANSWER, ENGINE, VERSION), calibrator(0.9, 0.95))
    await answered(question(LASTS), retriever, store, chat, choosing(word) if word else None)
    answer = last(chat).answer
    assert answer.badge is not None
    assert (answer.note, answer.badge.probability is None) == (note, probability is None)


class Closed(Handbook):
    """The same documents, now for one channel."""

    async def documents(self) -> AsyncIterator[Document]:
        async for document in super().documents():
            yield replace(document, readers=frozenset({"channel:vault"}))


async def test_a_choice_among_documents_that_were_closed_meanwhile_is_not_shown(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    index, encoders = FakePassageIndex(), FakeEncoderStore()
    await ingest_knowledge([Handbook()], index, encoders, None)
    model = Hanging()
    answering = asyncio.create_task(answered(question(LASTS), Retriever(index, encoders, None), store, chat, model))
    await asyncio.sleep(0.05)
    await ingest_knowledge([Closed()], index, encoders, None)
    model.may.set()
    await answering
    assert last(chat).answer.abstained


@pytest.mark.parametrize("error", [Undeliverable("It does not take that."), ChatUnavailable("It is down.")])
async def test_a_chat_that_takes_no_quotes_gets_the_answer_and_leaves_no_dead_letter(
    retriever: Retriever,
    store: InMemoryStore,
    chat: RecordingMessenger,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    class Picky(RecordingMessenger):
        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            if isinstance(message, AnswerMessage) and message.answer.note == READS_ON:
                raise error
            return await super().post(place, message, intent)

    impatient(monkeypatch)
    await answered(question(LASTS), retriever, store, picky := Picky(), Hanging(), limits=SHORT)
    assert last(picky).answer.note == WITHOUT_MODEL
    assert not store.dead_letters.by_intent


async def test_a_run_that_is_resumed_takes_back_no_answer(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answered(question(LASTS), retriever, store, chat)
    shown = last(chat).answer
    impatient(monkeypatch)
    again = asyncio.create_task(answered(question(LASTS), retriever, store, chat, Hanging()))
    await asyncio.sleep(0.1)
    assert list(chat.standing.values()) == [AnswerMessage(shown)]
    again.cancel()


async def test_an_answer_is_of_the_source_that_it_cites_and_is_judged_by_what_it_cites(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question(ROLLBACK), retriever, store, chat)
    (prediction,) = store.predictions.by_id.values()
    assert (prediction.group, prediction.references) == ("handbook", ("handbook/canary", "handbook/stages"))


async def test_an_edited_question_has_an_edited_answer(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await answered(question("what is the wifi password?"), retriever, store, chat)
    edited = replace(question(ROLLBACK), revision="1773480650.000000")
    for _ in range(2):  # the step may run twice
        await answered(edited, retriever, store, chat)
    assert len(chat.standing) == 1
    assert len(chat.edited) == 1
    (shown,) = chat.standing.values()
    assert isinstance(shown, AnswerMessage)
    assert "slip rollback" in shown.answer.text


async def test_a_choice_waits_in_hand_for_a_chat_that_asks_to_wait_a_bit(
    retriever: Retriever, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    model = choosing("6 January")
    chat.trouble.append(Trouble.DOWN)
    chat.retry_after = 0.0
    await answered(question(LASTS), retriever, store, chat, model)
    asked = len(model.requests)
    assert len(chat.standing) == 1
    chat.trouble.append(Trouble.DOWN)
    chat.retry_after = 60.0
    with pytest.raises(ChatUnavailable):
        await answered(question(LASTS, "q2"), retriever, InMemoryStore(), chat, model)
    assert len(model.requests) == 2 * asked, "and it is chosen once"
