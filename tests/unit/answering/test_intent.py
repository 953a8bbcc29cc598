"""What kind of thing a question asks for."""

from __future__ import annotations

import pytest

from core.answering.intent import Intent, command_in, intent_of, says_how
from core.answering.statements import statements
from core.knowledge.document import Document
from core.knowledge.passages import passages_of


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("how do I drain a runner?", Intent.PROCEDURE),
        ("the cache is full, what now?", Intent.PROCEDURE),
        ("it is stuck. What next?", Intent.PROCEDURE),
        ("who owns the ledger?", Intent.PERSON),
        ("when does the freeze begin?", Intent.MOMENT),
        ("how long does a drain take?", Intent.DURATION),
        ("how many runners are there?", Intent.QUANTITY),
        ("why is it slow?", Intent.REASON),
        ("is it slow?", Intent.OTHER),
    ],
)
def test_the_kind_of_a_question_is_told_by_its_words(question: str, intent: Intent) -> None:
    assert intent_of(question) is intent


@pytest.mark.parametrize("heading", ["Procedure", "Steps", "Doing it", "The command", "How to do it by hand"])
def test_a_heading_may_say_only_that_it_tells_how(heading: str) -> None:
    assert says_how(heading)


@pytest.mark.parametrize("heading", ["", "When to rebuild", "Do not", "How the worker works", "Undoing"])
def test_a_heading_that_says_more_tells_something_else(heading: str) -> None:
    assert not says_how(heading)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("```\ndrain NAME\n```", "```\ndrain NAME\n```"),
        ("- Run `drain NAME` first. It is not lost.", "`drain NAME`"),
        ("Never run `drain NAME` on Thursdays.", ""),
        ("The state is `DRAINED` then.", ""),
        ("Wait for it.", ""),
    ],
)
def test_a_statement_may_say_what_to_run(text: str, command: str) -> None:
    [passage] = passages_of(Document("docs/a.md", "docs", "runbooks", "Title", text))
    [statement] = statements(passage)
    assert command_in(statement) == command
