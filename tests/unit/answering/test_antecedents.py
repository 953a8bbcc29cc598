"""What a statement leans on."""

from __future__ import annotations

import pytest

from core.answering.antecedents import antecedents, leans
from core.answering.statements import Statement, statements
from core.knowledge.document import Document
from core.knowledge.passages import passages_of

FIRST = "The crane is slow."


def of(text: str) -> tuple[Statement, ...]:
    [passage] = passages_of(Document("docs/a.md", "docs", "runbooks", "Title", text))
    return statements(passage)


def last_leans_on(text: str) -> list[str]:
    """The antecedents of the last statement, the nearest first."""
    found = of(text)
    return [item.text for item in antecedents(found[-1], found)]


@pytest.mark.parametrize(
    "text",
    [
        "It stops at night.",
        "**This** is normal.",
        "Then tell the harbour.",
        "If they are red, wait.",
        "After that the lock is open.",
        "For these, ask first.",
        "The same goes for barges.",
        "Instead, use the winch.",
        "Use the table above.",
        "Repeat the previous step for barges.",
        "Add `--now` to the command above.",
        "As above, wait for the tide.",
        "The latter is slower.",
    ],
)
def test_what_points_back_leans_on_the_statement_before_it(text: str) -> None:
    assert last_leans_on(f"{FIRST} {text}") == [FIRST]


@pytest.mark.parametrize(
    "text",
    [
        "Stop the crane at night.",
        "There are six barges.",
        "Both clusters run at the same time.",
        "Keep the load above 20 tons, never above 40.",
        "The previous version is kept for three days.",
        "Instead of the winch, use the crane.",
        "If the light is red, wait.",
        "Item 5 is last.",
    ],
)
def test_what_names_all_that_it_speaks_of_stands_alone(text: str) -> None:
    assert last_leans_on(f"{FIRST} {text}") == []


def test_what_a_statement_leans_on_leans_in_turn() -> None:
    assert last_leans_on("Rain falls. Barges fill. They sink. Then they are raised.") == ["They sink.", "Barges fill."]


def test_a_pronoun_that_begins_a_section_means_its_heading() -> None:
    assert last_leans_on(f"{FIRST}\n\n## Weekly freeze\n\nIt begins on Friday.") == []


def test_the_same_command_is_the_nearest_block_above_and_no_remark_on_it() -> None:
    page = "## Back\n\n```\ndock back\n```\n\nLater run `dock unlock`. Tell us.\n\n## Trial\n\nThe same command with `--trial`."
    assert last_leans_on(page) == ["```\ndock back\n```"]


def test_the_same_command_is_that_of_its_own_section_where_that_holds_one() -> None:
    page = "```\ndock back\n```\n\n## Trial\n\nRun `dock try`. Wait for the tide. The same command ends it."
    assert last_leans_on(page) == ["Run `dock try`."]


def test_a_list_item_and_a_code_block_lean_on_what_introduces_them() -> None:
    assert last_leans_on("Look at two things:\n\n- the tide,\n- the wind.") == ["Look at two things:"]
    assert last_leans_on(f"{FIRST} Then stop it:\n\n```\nstop\n```") == ["Then stop it:", FIRST]


def test_code_and_rows_of_a_table_never_point_back() -> None:
    code, row = of("```\nthis.same above\n```\n\n| It | This |\n|---|---|\n| a | b |")
    assert not leans(code)
    assert not leans(row)
