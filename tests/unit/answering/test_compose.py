"""Evidence → answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.answering.compose import MAX_STATEMENTS, compose
from core.answering.statements import statements
from core.knowledge.document import Document, DocumentKind
from core.knowledge.layout import thread_text, thread_urls
from core.knowledge.passages import passages_of
from core.knowledge.ranking import RankedPassage
from core.knowledge.terms import terms

RUNBOOK = """# Draining a runner

The pools are described elsewhere.

## Drain one

Tell #ci-cd first. Then mark the runner:

```
drydock runner drain NAME
```

It takes 45 minutes at most. Nothing is lost. The jobs finish. New ones go elsewhere.

## Replace it

1. Retire the runner.
2. Wait for the group.
3. Check the cache.
4. Unpin the image.
5. Tell the team.
6. Close the ticket.

## Who decides

Hana Petrov decides about drains on Thursdays. Nobody else may. The rota is in the wiki. Ask early in the week.
"""


def found(text: str, score: float = 1.0, name: str = "drain", kind: DocumentKind = DocumentKind.PAGE) -> RankedPassage:
    document = Document(
        f"docs/{name}.md", "docs", "runbooks", f"About {name}", text, kind, url=f"https://d.example/{name}"
    )
    [passage] = passages_of(document)
    return RankedPassage(passage, 5.0, 0.6, score, score, 1.0, 0.5)


def answer(question: str, *passages: RankedPassage):
    return compose(question, dict.fromkeys(terms(question), 1.0), passages or [found(RUNBOOK)])


def texts(question: str, *passages: RankedPassage) -> list[str]:
    return [sentence.text for sentence in answer(question, *passages).sentences]


def test_how_is_answered_with_the_command_below_its_lead_in() -> None:
    said = texts("how do I drain a runner?")
    code = said.index("```\ndrydock runner drain NAME\n```")
    assert said[code - 1] == "Then mark the runner:"


def test_how_long_is_answered_with_the_number() -> None:
    assert "It takes 45 minutes at most." in texts("how long does it take to drain one?")


def test_who_is_answered_with_the_name() -> None:
    assert texts("who decides about drains?")[0] == "Hana Petrov decides about drains on Thursdays."


def test_steps_stay_together_in_order() -> None:
    assert texts("how do I replace a runner?") == [
        "Retire the runner.",
        "Wait for the group.",
        "Check the cache.",
        "Unpin the image.",
        "Tell the team.",
    ]


def test_every_sentence_is_cited_with_title_heading_anchor_and_address() -> None:
    composition = answer("how do I drain a runner?")
    numbers = {citation.number for citation in composition.citations}
    assert all(sentence.citations and set(sentence.citations) <= numbers for sentence in composition.sentences)
    first = composition.citations[0]
    assert (first.number, first.title, first.heading, first.anchor) == (1, "About drain", "Drain one", "drain-one")
    assert first.url == "https://d.example/drain"
    assert first.quote in RUNBOOK


def test_a_heading_that_stands_there_twice_is_two_sections_with_a_link_each() -> None:
    page = found(
        "# Deploy\n\n## Ledger\n\n### Verify\n\nThe ledger is verified by its clerk.\n\n"
        "## Till\n\n### Verify\n\nThe till is verified with `till check`."
    )
    composition = answer("how is the till verified?", page)
    assert [sentence.text for sentence in composition.sentences] == ["The till is verified with `till check`."]
    assert [source.anchor for source in composition.citations] == ["verify-1"]


def test_the_repeats_of_a_heading_are_counted_over_passages() -> None:
    text = "\n\n".join(f"## Verify\n\n{f'word{n} ' * 700}\n\nThe number is {n}." for n in range(3))
    passages = passages_of(Document("docs/a.md", "docs", "runbooks", "Title", text))
    found = {(item.text, item.repeat) for passage in passages for item in statements(passage)}
    assert {(f"The number is {n}.", n) for n in range(3)} <= found
    assert len({text for text, _ in found}) == len(found)


def test_an_answer_is_bounded() -> None:
    text = "\n\n".join(f"Drain the runner number {n} now." for n in range(30))
    assert 1 <= len(texts("drain the runner now", found(text))) <= MAX_STATEMENTS


def test_the_better_passage_answers_when_both_say_the_same() -> None:
    better, worse = found("Drain it with care.", 1.0, "better"), found("Drain it with haste.", 0.6, "worse")
    assert texts("how do I drain it?", better, worse) == ["Drain it with care."]


def test_a_second_section_of_the_document_adds_what_the_first_leaves_open() -> None:
    text = "## Drain\n\nDrain the runner by name.\n\n## Quota\n\nThe quota of tug machines is six."
    assert texts("drain a runner, and what is the quota of tug machines?", found(text)) == [
        "The quota of tug machines is six.",
        "Drain the runner by name.",
    ]


def test_a_past_incident_is_told_with_its_cause_and_fix() -> None:
    text = "Reminders stopped at nine. Mail works. Nothing was deployed.\n\nRoot cause: No credit.\n\nFix: Topped up."
    assert texts("reminders stopped", found(text, kind=DocumentKind.INCIDENT)) == [
        "Reminders stopped at nine.",
        "Root cause: No credit.",
        "Fix: Topped up.",
    ]


def test_a_thread_is_answered_from_its_replies() -> None:
    text = thread_text("redis-cli gives NOPERM?", ["use `seatctl raw get KEY --read-only`", "thanks"])
    assert texts("redis-cli NOPERM", found(text, kind=DocumentKind.THREAD)) == ["use `seatctl raw get KEY --read-only`"]


def test_a_citation_of_a_thread_leads_to_the_very_message() -> None:
    message, replies = "the runner is full?", ["which one?", "drain it with `drydock runner drain 7`.", "thanks!"]
    urls = thread_urls(message, "https://chat/1", [(reply, f"https://chat/1-{n}") for n, reply in enumerate(replies)])
    document = Document(
        "chat/1",
        "chat",
        "chat",
        "#ci",
        thread_text(message, replies),
        DocumentKind.THREAD,
        "https://chat/1",
        part_urls=urls,
    )
    [passage] = passages_of(document)
    composition = answer("how do I drain a full runner?", RankedPassage(passage, 5.0, 0.6, 1.0, 1.0, 1.0, 0.5))
    assert [source.deep_link for source in composition.citations] == ["https://chat/1-1"]


def test_what_was_said_in_a_thread_is_not_quoted_without_the_objection_to_it() -> None:
    replies = [
        "Restart the ingest worker with `worker restart --now`.",
        "No, don't do that.",
        "It loses mail that nobody read.",
        "The dashboard shows it after a minute.",
        "It is blue.",
        "Blue since the spring of this year.",
    ]
    quoted = texts(
        "how do I restart the ingest worker?", found(thread_text("worker?", replies), kind=DocumentKind.THREAD)
    )
    assert quoted[:2] == replies[:2]


def test_a_section_whose_heading_is_asked_for_comes_before_a_special_one() -> None:
    page = (
        "# Kept data\n\n## Old archives\n\nLogs of archives were kept 9 days, and other logs were not.\n\n"
        "## Logs\n\nEverything goes to one store. It stays for 14 days."
    )
    assert texts("how long are the logs kept?", found(page, name="kept"))[0].endswith("store.")


def test_the_last_word_of_a_phrase_is_what_it_is_about() -> None:
    page = (
        "# Rules\n\n## Weekly freeze\n\nIt lasts from Friday 14:00 until Monday 07:00.\n\n"
        "## Deployment windows\n\nEvery day from 08:00 to 16:00 a deployment may begin."
    )
    assert texts("when is the deployment freeze?", found(page, name="rules"))[0].startswith("It lasts from Friday")


def test_the_sentence_that_answers_comes_first_unless_it_leans_on_another() -> None:
    first = "Backups are made by the replica. The base backup starts at 01:30. Nobody needs to watch."
    assert texts("when does the base backup start?", found(f"# A\n\n{first}", name="a"))[0].endswith("01:30.")
    leaning = "The base backup is made by the replica. It starts at 01:30. Nobody needs to watch."
    assert texts("when does the base backup start?", found(f"# B\n\n{leaning}", name="b"))[0].endswith("replica.")


def test_a_sentence_is_given_with_the_one_that_goes_on() -> None:
    page = (
        "# Approval\n\nTwo people approve every change. In holidays only one colleague may be there to approve. "
        "The head of engineering stands in. It is reported. The reason is given. Keep it rare."
    )
    assert texts("only one colleague is there in the holidays?", found(page, name="c")) == [
        "In holidays only one colleague may be there to approve.",
        "The head of engineering stands in.",
    ]


def test_what_is_announced_is_given_too() -> None:
    page = (
        "# Images\n\nA lost image was swept. Within 72 hours it comes back:\n\n```\nundelete IMAGE\n```\n\n"
        "Later it is built anew. Pins are an exception. There are five of them."
    )
    assert texts("a lost image was swept", found(page, name="images")) == [
        "A lost image was swept.",
        "Within 72 hours it comes back:",
        "```\nundelete IMAGE\n```",
    ]


def test_a_statement_that_names_a_command_is_given_with_it_from_the_section_above() -> None:
    page = (
        "# Taking a service back\n\n## The command\n\n```\ndock undo SERVICE\n```\n\nIt lasts for 90 seconds.\n\n"
        "## Taking back a trial\n\nThe same command, with `--trial`. Only the pods of the trial are taken away."
    )
    composition = answer("can a trial be taken back?", found(page, name="back"))
    assert [sentence.text for sentence in composition.sentences] == [
        "```\ndock undo SERVICE\n```",
        "The same command, with `--trial`.",
        "Only the pods of the trial are taken away.",
    ]
    assert [sentence.citations for sentence in composition.sentences] == [(1,), (2,), (2,)]
    assert [source.heading for source in composition.citations] == ["The command", "Taking back a trial"]


def test_a_statement_is_given_with_what_it_leans_on_and_what_that_leans_on() -> None:
    page = (
        "# Cargo\n\nThe crane lifts crates. They are counted. Then they are weighed by the harbour scale. "
        "The ledger is paper. Ink is blue. Rain is common. Boots are worn. Gulls are loud."
    )
    assert texts("which harbour scale weighs?", found(page, name="cargo"))[:3] == [
        "The crane lifts crates.",
        "They are counted.",
        "Then they are weighed by the harbour scale.",
    ]


def test_what_leans_on_more_than_there_is_room_for_is_bounded_and_ends_with_what_answers() -> None:
    row = " ".join(f"It is next to crate {n}." for n in range(10, 20))
    quoted = texts("what is next to crate 17?", found(f"# Crates\n\nThe row is long. {row} Gulls are loud."))
    assert len(quoted) == MAX_STATEMENTS
    assert quoted[-1] == "It is next to crate 17."


def test_how_is_answered_by_the_section_that_says_how_and_not_by_the_one_that_says_when() -> None:
    page = (
        "# Repainting the hull\n\n## When to repaint\n\n- The diver reports that the hull is rusty.\n"
        "- Repaint the hull at once where `hull_rust` is above 4.\n- Every third winter.\n- `brush spot` repaints a spot.\n\n"
        "## Doing it\n\n```\ndock lift --slow\nbrush --coats 2\n```\n\nTwo coats last for years. Dry it well. Wait a day."
    )
    assert texts("how do I repaint the hull?", found(page, name="Repainting the hull"))[0].startswith("```\ndock lift")


def test_how_is_answered_with_the_command_that_a_sentence_elsewhere_on_the_page_holds() -> None:
    page = (
        "# Late mail\n\nThe office stops sending ordinary mail at night. Boats carry it.\n\n"
        "## Levers\n\n- Ask for boats.\n- Wait for the tide.\n- Hold it: `set ordinary-mail off`. Nothing is lost.\n- Call."
    )
    assert texts("how do I stop sending ordinary mail?", found(page, name="Late mail")) == [
        "The office stops sending ordinary mail at night.",
        "Boats carry it.",
        "Hold it: `set ordinary-mail off`. Nothing is lost.",
    ]


def test_coverage_counts_what_stands_in_the_context_for_less() -> None:
    inside, around = answer("drain", found("Drain it.")), answer("drain", found("## Drain\n\nDo it."))
    assert inside.coverage == 1.0
    assert 0 < around.coverage < 1.0
    assert answer("zebra", found("Drain it.")).coverage == 0.0


@pytest.mark.parametrize("text", ["See:", "## Only a heading"])
def test_a_passage_without_a_statement_gives_no_answer(text: str) -> None:
    assert not answer("drain", found(text)).sentences


def test_no_passage_no_answer() -> None:
    assert compose("drain", {"drain": 1.0}, []).sentences == ()


def test_untrusted_text_is_quoted_and_nothing_else() -> None:
    text = "Drain <script>alert(1)</script> [click](javascript:alert(1)) @channel"
    assert texts("drain", found(text)) == [text]


def test_the_date_of_a_document_is_kept() -> None:
    document = Document("d/a", "d", "f", "T", "Drain it.", updated_at=datetime(2026, 1, 2, tzinfo=UTC))
    [passage] = passages_of(document)
    composition = compose("drain", {"drain": 1.0}, [RankedPassage(passage, 1, 1, 1, 1, 1, 1)])
    assert composition.citations[0].updated_at == datetime(2026, 1, 2, tzinfo=UTC)


def test_a_long_section_that_shares_nothing_with_the_question_is_quoted_without_failing() -> None:
    text = "One stands here. Two stands here. Three stands here. And this:\n\n```\ncode\n```"
    assert texts("zebra", found(text))


@pytest.mark.parametrize(
    ("question", "is_there"),
    [
        ("who decides about drains?", True),
        ("how long does a drain take?", True),
        ("who replaces the runner?", True),
        ("when is the cache checked?", False),
        ("how do I replace it?", True),
        ("is anything lost?", True),
    ],
)
def test_whether_the_kind_of_thing_that_was_asked_for_is_there_is_said(question: str, is_there: bool) -> None:
    assert answer(question).is_of_kind is is_there


def test_how_long_is_said_before_the_command_that_another_sentence_leans_on() -> None:
    page = (
        "# Taking a service back\n\n## The command\n\n```\ndock undo SERVICE\n```\n\n"
        "## Taking back a trial\n\nThe same command, with `--trial`. A trial is taken back within 15 seconds."
    )
    assert texts("how long until a trial is taken back?", found(page, name="back")) == [
        "A trial is taken back within 15 seconds.",
        "```\ndock undo SERVICE\n```",
        "The same command, with `--trial`.",
    ]
