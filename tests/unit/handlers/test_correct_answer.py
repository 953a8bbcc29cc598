"""From “wrong” to a document that says who vouches for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.incidents.incident_questions import parse_command
from core.model.badge import Evaluation, Prediction, PredictionKind
from core.model.conversation import Audience, Person, Place, Platform, Question, Speaker, Turn
from core.model.document import MAX_QUESTION, MAX_TEXT, CuratedAnswer, Document, answer_id
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, CorrectionRequest, Notice, ProposalMessage
from handlers.common.post_message import Poster
from handlers.questions.correct_answer import (
    NO_ANSWER_HERE,
    SOMEBODY_ELSE,
    ask_for_correction,
    confirm_correction,
    correct_in_words,
    propose_correction,
)
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
THREAD = Place(Platform.SLACK, "C0ASK", "17.25")
ADA, BO = Person(Platform.SLACK, "U0ADA", "Ada Quist"), Person(Platform.SLACK, "U0BO", "Bo Lindgren")
HERE = Audience(frozenset({"public", "channel:vault"}), frozenset({"channel:vault"}))
MONTH = timedelta(days=30)


class Corrections:
    """The handlers over a store and a chat in memory; the word `hunter2` is a secret."""

    def __init__(self) -> None:
        self.store, self.chat = InMemoryStore(), RecordingMessenger()
        self.poster = Poster(self.store, {Platform.SLACK: self.chat})
        self.published = 0
        self.store.predictions.by_id["p1"] = Prediction(
            "p1", PredictionKind.ANSWER, "q1", "By hand.", Evaluation(0.5, 0.5), "evidence", "1", NOW
        )
        self.said("q1", "How do I roll back a canary?", "By hand.")

    def said(self, question_id: str, question: str, answer: str) -> None:
        self.store.conversations.turns[f"{question_id}:question"] = THREAD, Turn(Speaker.PERSON, question)
        self.store.conversations.turns[f"{question_id}:answer"] = THREAD, Turn(Speaker.PLUMBLINE, answer)

    async def type(self, text: str, subject: str = "p1", audience: Audience = HERE) -> None:
        typed = Feedback("e1", ButtonAction.CORRECTION, subject, ADA, THREAD, NOW, text, audience)
        await propose_correction(typed, some_ports(store=self.store, poster=self.poster, redact=redact))

    async def say(self, text: str, place: Place = THREAD) -> None:
        question = Question("e1", parse_command(text).argument, ADA, place, HERE, NOW)
        await correct_in_words(question, some_ports(store=self.store, poster=self.poster, redact=redact))

    async def confirm(self, person: Person, subject: str = answer_id("e1"), audience: Audience = HERE) -> None:
        await confirm_correction(
            Feedback(f"confirm {person.id}", ButtonAction.CONFIRM, subject, person, THREAD, NOW, audience=audience),
            some_ports(store=self.store, poster=self.poster, lifetime=MONTH, publish=self._publish),
        )

    async def _publish(self) -> None:
        assert await self.current() != []
        self.published += 1

    async def current(self) -> list[CuratedAnswer]:
        async with self.store.transaction() as transaction:
            return await transaction.curated.current(NOW)


def redact(document: Document) -> Document:
    return replace(
        document, title=document.title.replace("hunter2", "[secret]"), text=document.text.replace("hunter2", "[secret]")
    )


@pytest.fixture
def corrections() -> Corrections:
    return Corrections()


async def test_whoever_says_wrong_is_asked_what_is_right_once_for_each_answer(corrections: Corrections) -> None:
    for person in (ADA, BO):
        wrong = Feedback(f"wrong {person.id}", ButtonAction.WRONG, "p1", person, THREAD, NOW)
        await ask_for_correction(wrong, some_ports(store=corrections.store, poster=corrections.poster))
    assert corrections.chat.posted == [(THREAD, CorrectionRequest("p1"))]


async def test_a_secret_that_is_cut_off_is_none_that_is_kept(corrections: Corrections) -> None:
    corrections.said("q1", f"{'a' * (MAX_QUESTION - 3)}hunter2?", "By hand.")
    await corrections.type(f"{'b' * (MAX_TEXT - 3)}hunter2.")
    await corrections.confirm(BO)
    [answer] = await corrections.current()
    assert (len(answer.question), len(answer.text)) == (MAX_QUESTION, MAX_TEXT)
    assert "hun" not in answer.question + answer.text


async def test_nobody_is_asked_about_an_answer_that_does_not_exist(corrections: Corrections) -> None:
    wrong = Feedback("wrong", ButtonAction.WRONG, "p2", ADA, THREAD, NOW)
    await ask_for_correction(wrong, some_ports(store=corrections.store, poster=corrections.poster))
    assert corrections.chat.posted == []


async def test_what_is_typed_is_proposed_to_the_readers_of_the_place_and_is_no_document_yet(
    corrections: Corrections,
) -> None:
    await corrections.type("Run `slip rollback`.")
    ((place, message),) = corrections.chat.posted
    assert place == THREAD
    assert message == ProposalMessage(
        CuratedAnswer(
            answer_id("e1"), "How do I roll back a canary?", "Run `slip rollback`.", ADA, HERE.disclosed_to, NOW
        )
    )
    assert await corrections.current() == []


async def test_the_label_of_the_wrong_answer_says_what_is_right(corrections: Corrections) -> None:
    await corrections.type("Run `slip rollback` with hunter2.")
    ((_, outcome),) = corrections.store.predictions.outcomes.items()
    assert (outcome.correct, outcome.comment) == (False, "Run `slip rollback` with [secret].")


async def test_secrets_are_taken_out_before_anything_is_stored_or_shown(corrections: Corrections) -> None:
    corrections.said("q1", "Is it hunter2?", "No.")
    await corrections.type("No, hunter2 is the old one.")
    assert "hunter2" not in repr((corrections.store.curated, corrections.store.predictions, corrections.chat.posted))


@pytest.mark.parametrize(("text", "subject"), [("  \n", "p1"), ("Run it.", "p2")])
async def test_nothing_is_proposed_from_nothing(corrections: Corrections, text: str, subject: str) -> None:
    await corrections.type(text, subject)
    assert corrections.chat.posted == []


async def test_a_correction_in_words_is_for_the_last_question_of_the_thread(corrections: Corrections) -> None:
    corrections.said("q2", "Where is the till configured?", "")
    await corrections.say("correct: in `till.yaml`")
    ((_, message),) = corrections.chat.posted
    assert isinstance(message, ProposalMessage)
    assert (message.answer.question, message.answer.text) == ("Where is the till configured?", "in `till.yaml`")


async def test_a_follow_up_is_corrected_together_with_what_it_follows(corrections: Corrections) -> None:
    corrections.said("q2", "and in staging?", "The same.")
    await corrections.say("correct: in staging nothing is rolled back")
    ((_, message),) = corrections.chat.posted
    assert isinstance(message, ProposalMessage)
    assert message.answer.question == "How do I roll back a canary? and in staging?"


@pytest.mark.parametrize(("text", "thread"), [("correct: that", "99.9"), ("correct:", "17.25")])
async def test_a_correction_of_nothing_is_told_how_it_is_done(corrections: Corrections, text: str, thread: str) -> None:
    place = replace(THREAD, thread=thread)
    await corrections.say(text, place)
    assert corrections.chat.posted == [(place, Notice(NO_ANSWER_HERE))]


async def test_a_confirmed_answer_is_published_and_says_by_whom_and_until_when(corrections: Corrections) -> None:
    await corrections.type("Run `slip rollback`.")
    await corrections.confirm(BO)
    (answer,) = await corrections.current()
    assert answer.attestation == "Confirmed by Bo Lindgren on 2026-03-14, expires 2026-04-13"
    assert corrections.published == 1
    assert corrections.chat.edited[-1][1] == ProposalMessage(answer)


async def test_the_author_alone_is_not_enough(corrections: Corrections) -> None:
    await corrections.type("Run `slip rollback`.")
    await corrections.confirm(ADA)
    assert await corrections.current() == []
    assert corrections.chat.posted[-1] == (THREAD, Notice(SOMEBODY_ELSE, only_for=ADA))


async def test_where_nobody_else_reads_the_author_is_enough(corrections: Corrections) -> None:
    only_ada = frozenset({"person:slack:U0ADA"})
    direct = Audience(only_ada | {"public"}, only_ada)
    await corrections.type("Run `slip rollback`.", audience=direct)
    await corrections.confirm(ADA, audience=direct)
    (answer,) = await corrections.current()
    assert answer.readers == only_ada


async def test_a_second_confirmation_changes_nothing(corrections: Corrections) -> None:
    await corrections.type("Run `slip rollback`.")
    for person in (BO, Person(Platform.SLACK, "U0CY", "Cy"), ADA):
        await corrections.confirm(person)
    (answer,) = await corrections.current()
    assert answer.confirmed_by == BO


async def test_nobody_confirms_what_he_may_not_read(corrections: Corrections) -> None:
    await corrections.type("Run `slip rollback`.")
    await corrections.confirm(BO, audience=Audience())
    assert await corrections.current() == []


async def test_a_confirmation_of_what_does_not_exist_is_ignored(corrections: Corrections) -> None:
    await corrections.confirm(BO, "e2")
    assert corrections.chat.posted == []
    assert corrections.published == 0


async def test_the_id_of_a_proposal_does_not_say_who_made_it(corrections: Corrections) -> None:
    typed = Feedback(
        "slack:C0ASK:17.25:17.26:U0ADA", ButtonAction.CORRECTION, "p1", ADA, THREAD, NOW, "Run `slip rollback`.", HERE
    )
    for _ in range(2):
        await propose_correction(typed, some_ports(store=corrections.store, poster=corrections.poster, redact=redact))
    ((_, message),) = corrections.chat.posted
    assert isinstance(message, ProposalMessage)
    assert "U0ADA" not in message.answer.id
