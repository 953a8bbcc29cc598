"""How a message is shortened, step by step, and what is never cut."""

from __future__ import annotations

from dataclasses import replace

from core.incidents.incident_layout import (
    CAUSE,
    EXPLAINS,
    HELPED,
    NEXT,
    OR_CAUSE,
    OWNER,
    PHONE_LINES,
    PHONE_WIDTH,
    cut,
    fitted,
    phone_lines,
)
from core.model.badge import Badge, Strength
from core.model.message_view import Line, Link, MessageView

SENTENCE = "the pool of connections was lowered to four, so every request waits; then errors appeared"


def line(label: str, text: str, **fields: object) -> Line:
    return replace(Line(text, label), **fields)


def view(*lines: Line) -> MessageView:
    return MessageView("incident", summary="", parts=lines, headline="headline", state="state")


def long(clauses: int) -> str:
    return ". ".join([SENTENCE] * clauses)


def lines_of(*lines: Line) -> tuple[Line, ...]:
    return fitted(view(*lines)).lines


def test_a_text_is_cut_at_a_word_and_says_so() -> None:
    cases: list[tuple[str, int, str]] = [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two…"),
        ("one  two\nthree", 13, "one two three"),
        ("one two of the three", 16, "one two…"),  # no end in a leading word
        ("one two, three", 12, "one two…"),
        ("the warehouse", 6, "the…"),  # nothing else would be left
        ("disk of the warehouse", 16, "disk…"),
        ("unbreakable", 6, "unbre…"),
        ("a" * 100, 10, "a" * 9 + "…"),
        ("", 5, ""),
    ]
    for text, limit, short in cases:
        assert cut(text, limit) == short, (text, limit, short)
        assert len(cut(text, limit)) <= limit, (text, limit, short)


def test_a_message_that_fits_is_left_as_it_is() -> None:
    fits = view(*(line("", "x" * PHONE_WIDTH) for _ in range(PHONE_LINES - 2)))
    assert phone_lines(fits) == PHONE_LINES
    assert fitted(fits) is fits
    assert phone_lines(view(*fits.lines, line("", "x"))) == PHONE_LINES + 1


def test_each_line_is_counted_with_its_label_its_code_its_links_and_its_badge() -> None:
    full = line(
        NEXT,
        "Run it:",
        badge=Badge(Strength.STRONG),
        code="kubectl get pods",
        links=(Link("runbook", "https://x.example"),),
    )
    assert full.plain == "Next Run it: · kubectl get pods · runbook · strong"
    assert line("", "`a`").plain == "a"


def test_what_stands_beside_owner_cause_and_next_is_shortened_first() -> None:
    owner, cause = line(OWNER, "Payments"), line(CAUSE, long(3))
    shown = lines_of(line("", long(5)), owner, cause)
    assert shown[1:] == (owner, cause)
    assert shown[0].text.endswith("…")


def test_parts_lose_their_names_and_a_second_cause_loses_words_before_the_first_cause_does() -> None:
    part = Link("check-in fails", "https://x.example")
    parts = line(EXPLAINS, "3 more incidents with 9 alerts, 2 open", links=(part,) * 3)
    owner, cause = line(OWNER, "Payments"), line(CAUSE, long(2))
    short, counted = "a batch job holds them for ten minutes", "3 more incidents with 9 alerts…"
    for other, left, links in ((short, short, 3), (SENTENCE, SENTENCE, 0), (long(2), f"{SENTENCE}…", 0)):
        first, *others = lines_of(parts, owner, cause, line(OR_CAUSE, other))
        assert (first.text, len(first.links)) == (counted if links == 0 else parts.text, links), other
        assert others == [owner, cause, line(OR_CAUSE, left)], other


def test_a_fix_of_last_time_loses_clauses_before_the_cause_does() -> None:
    helped, cause = line(HELPED, long(5), links=(Link("INC-1", "https://x.example"),)), line(CAUSE, long(3))
    shown = lines_of(line(OWNER, "Payments"), cause, helped)
    assert shown[1] == cause
    assert len(shown[2].text) < len(helped.text)
    assert shown[2].links == helped.links


def test_a_command_stays_whole_without_half_an_instruction() -> None:
    command = "kubectl " + "x" * 60
    shown = lines_of(line(OWNER, "Payments"), line(CAUSE, long(4)), line(NEXT, "y" * 400, code=command))
    assert (shown[2].text, shown[2].code) == ("", command)


def test_an_instruction_without_a_command_is_cut_at_the_end_of_a_clause() -> None:
    shown = lines_of(line(OWNER, "Payments"), line(CAUSE, long(2)), line(NEXT, long(5)))
    assert shown[1].text == long(2)
    assert shown[2].text.endswith("…")
    assert long(5).startswith(shown[2].text.rstrip("…"))


def test_a_long_parenthesis_of_the_cause_is_shortened_to_what_it_begins_with_and_then_left_out() -> None:
    aside = f"(changed: {'z' * 40})"
    shown = lines_of(line(OWNER, "Payments"), line(CAUSE, f"{'x ' * 180}{aside} {'x ' * 40}"))
    assert "z" not in shown[1].text
    quoted = "no connection is left (“HikariPool-1 - Connection is not available, request timed out”)"
    shown = lines_of(line(OWNER, "Payments"), line(CAUSE, f"{quoted}; {long(4)}"))
    assert shown[1].text.startswith("no connection is left (“HikariPool-1 -…”);")


def test_what_is_of_minor_importance_goes_where_nothing_can_be_shortened() -> None:
    subtle = [line("", f"{number} short", is_subtle=True) for number in range(PHONE_LINES)]
    shown = lines_of(line(OWNER, "Payments"), line(CAUSE, "the pool"), *subtle)
    assert [each.text for each in shown] == ["Payments", "the pool", *(f"{number} short" for number in range(8))]


def test_of_owner_and_cause_the_cause_is_cut_first() -> None:
    unbroken = "w" * 40
    owner, cause = line(OWNER, " ".join([unbroken] * 3)), line(CAUSE, " ".join([unbroken] * 20))
    shown = lines_of(owner, cause)
    assert shown[0] == owner
    assert phone_lines(view(*shown)) <= PHONE_LINES


def test_a_cut_text_closes_its_quotation_and_its_parenthesis_and_opens_no_code() -> None:
    quoted = f"“{'word ' * 200}”"
    [shown] = lines_of(line("", quoted))
    assert shown.text.endswith("…”")
    [shown] = lines_of(line("", f"`{'word ' * 200}`"))
    assert "`" not in shown.text
    [shown] = lines_of(line(CAUSE, f"it was lowered (CHG-1, {'word ' * 200}"))
    assert shown.text.endswith("…)")
    [shown] = lines_of(
        line(CAUSE, f"The pool of payments was lowered from 40 to 4 (CHG-1, by Ada), {'word ' * 12}" * 4)
    )
    assert "…)" not in shown.text


def test_a_parenthesis_that_was_cut_before_still_says_so() -> None:
    [shown] = lines_of(line(CAUSE, f"({'word ' * 20}) {long(6)}"))
    assert shown.text.startswith("(word word word word…) the pool")
    assert shown.text.endswith("…")


def test_cause_is_not_cut_to_less_than_half_at_end_of_clause() -> None:
    shown = lines_of(line(OWNER, "Payments"), line(CAUSE, f"The pool is small; {'word ' * 120}"))
    assert len(shown[1].text) > 200


def test_short_fix_of_last_time_gives_way_before_asides_and_clauses_of_cause() -> None:
    cause = line(CAUSE, f"the pool (of four) was lowered; {'x ' * 155}")
    helped = line(HELPED, "Raised the pool to forty again; then restarted it")
    shown = lines_of(line(OWNER, "Payments (Asha)"), cause, helped)
    assert shown[2].text == "Raised the pool to forty again…"
    assert shown[:2] == (line(OWNER, "Payments (Asha)"), cause)


def test_fix_of_last_time_with_one_clause_loses_its_link_before_cause_is_cut() -> None:
    cause = line(CAUSE, f"the pool (of four) was lowered; {'x ' * 155}")
    helped = line(HELPED, "Raised the pool to forty", links=(Link("INC-2026-03-14-0042", "https://x.example"),))
    shown = lines_of(line(OWNER, "Payments"), cause, helped)
    assert shown[1:] == (cause, replace(helped, links=()))


def test_message_of_long_headline_alone_is_left_as_it_is() -> None:
    alone = replace(view(), headline="word " * 200)
    assert fitted(alone) == alone


def test_a_remark_is_shown_whole_or_not_at_all() -> None:
    remark = "May need a person: no earlier one has been seen here, and it began at night without any deployment."
    shown: set[str] = set()
    for words in range(60):
        lines = (Line("Payments", OWNER), Line("word " * 12 + "end", CAUSE), Line(remark, is_subtle=True))
        more = Line(("A description of what is broken, " * 10)[: 12 * words])
        shortened = fitted(view(more, *lines))
        shown |= {each.text for each in shortened.lines if each.is_subtle}
        assert phone_lines(shortened) <= PHONE_LINES
    assert shown == {remark}
