"""Store the outcome of a pressed feedback button, or call a person into the thread."""

from __future__ import annotations

from core.model.feedback import Feedback
from core.model.messages import CORRECT, ButtonAction, Notice, NoticeKind
from core.model.prediction import Outcome
from core.ports import Store
from handlers.questions.correct_answer import ask_for_correction
from handlers.questions.post_message import Poster

MAX_COMMENT = 300  # characters that are kept

ASK_A_PERSON = "{person} would like a person to answer this. Whoever knows: please reply here in the thread."


async def record_feedback(feedback: Feedback, *, store: Store, poster: Poster) -> None:
    """Store the label; for `ASK_A_PERSON`, post a request in the thread instead.

    Ask a person who marked an answer wrong for the right answer, unless the platform opens a form.

    A button of a prediction that no longer exists is ignored.
    """
    if feedback.verdict is ButtonAction.ASK_A_PERSON:
        text = ASK_A_PERSON.format(person=feedback.person.name or "Somebody")
        intent = f"ask-a-person:{await _asked(feedback.subject, store)}"
        await poster.post_once(intent, feedback.place, Notice(text, NoticeKind.INFORMATION))
    else:
        await _label(feedback, store)
        if feedback.verdict is ButtonAction.WRONG and not feedback.in_form:
            await ask_for_correction(feedback, store=store, poster=poster)


async def _asked(subject: str, store: Store) -> str:
    """Return the id of the question. The button names the question itself until a whole answer exists."""
    async with store.transaction() as transaction:
        prediction = await transaction.predictions.get(subject)
    return prediction.subject if prediction is not None else subject


async def _label(feedback: Feedback, store: Store) -> None:
    person = f"{feedback.person.platform}:{feedback.person.id}"
    async with store.transaction() as transaction:
        if await transaction.predictions.get(feedback.subject) is not None:
            comment = " ".join(feedback.text.split())[:MAX_COMMENT]
            await transaction.predictions.label(
                Outcome(feedback.subject, CORRECT[feedback.verdict], person, feedback.at, comment)
            )
