"""The parts of a long answer that the local page folds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from adapters.console.document import holds
from core.answering.answer_view import AnswerView
from core.answering.caveats import is_caveat
from core.model.answer import Sentence

SHOWN = 900  # characters after which an answer is folded
LEAST = 300  # characters that are worth a fold
MAX_STATEMENTS = 100

Run = tuple[bool, list[Sentence]]


def folded(view: AnswerView) -> list[Run]:
    """Return the text in runs, each with whether it is folded.

    Sentences that limit or forbid something and the one that answers are never folded.
    """
    runs = [
        (hidden, [sentence for _, sentence in run]) for hidden, run in groupby(_judged(view), key=lambda pair: pair[0])
    ]
    return [(hidden and sum(len(each.text) for each in run) >= LEAST, run) for hidden, run in runs]


def _judged(view: AnswerView) -> Iterator[tuple[bool, Sentence]]:
    shown = 0
    for sentence in view.said[:MAX_STATEMENTS]:
        shown += len(sentence.text)
        answers = any(holds(sentence.text, quote) for quote in view.marked)
        yield shown > SHOWN and not answers and not is_caveat(sentence.text), sentence
