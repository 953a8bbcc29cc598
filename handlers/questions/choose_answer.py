"""Choice of one of the quotes that were shown because none was certain: it becomes the answer, and a label."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from core.answering.find import find_answer
from core.model.answer import EVIDENCE
from core.model.badge import Outcome
from core.model.conversation import Question, Speaker, turn_key
from core.model.message_view import Feedback
from core.model.messages import CHOOSING, CORRECT, AnswerMessage
from handlers.common.ports import Ports
from handlers.common.post_message import ANSWERED, show_answer
from handlers.questions.correct_answer import LOOKED_BACK

CHOSEN = "{person} chose this one of the closest matches."


async def choose_answer(feedback: Feedback, ports: Ports) -> None:
    """Make the chosen quote the answer in the same message, and label the claim that the first one answers.

    The quotes are found again. The message stays as it is if the documents changed meanwhile, or this place may not read
    them any more.
    """
    async with ports.store.transaction() as transaction:
        prediction = await transaction.predictions.get(feedback.subject)
        if prediction is None or prediction.engine != EVIDENCE:
            return
        key = turn_key(prediction.subject, Speaker.PERSON)
        turn = await transaction.conversations.get(key, feedback.place)
        await transaction.predictions.label(
            Outcome(prediction.id, CORRECT[feedback.verdict], feedback.person.key, feedback.at)
        )
        history = await transaction.conversations.history(feedback.place, LOOKED_BACK)
    if turn is None:
        return
    before = tuple(takewhile(lambda each: each != turn, history))
    question = Question(
        prediction.subject, turn.text, feedback.person, feedback.place, feedback.audience, feedback.at, before
    )
    answer, _ = await find_answer(question, ports.knowledge.retriever)
    place = CHOOSING.index(feedback.verdict)
    quotes = {each.document_id for each in answer.citations}
    if answer.text != prediction.value or not quotes.issuperset(prediction.references) or place >= len(answer.quotes):
        return
    quote = answer.quotes[place]
    chosen = replace(
        answer,
        citations=tuple(each for each in answer.citations if each.number == quote.citation),
        excerpts=(quote,),
        further=(),
        tentative=False,
        conflicts=answer.conflicts if place == 0 else (),
        note=CHOSEN.format(person=feedback.person.name or "Somebody"),
        prediction_id=prediction.id if place == 0 else None,
    )
    shown = ports.knowledge.help_desk.completed(chosen, question)
    await show_answer(AnswerMessage(shown), question, ANSWERED, ports.poster, str(feedback.verdict))
