"""Which address, section, instruction and command of a page are the runbook's next action."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.runbook import (
    RunbookSearch,
    best_section,
    fit,
    has_command,
    is_at,
    linked_addresses,
    read_section,
    runbook_search,
    sections_of,
)
from core.knowledge.passages import passages_of
from core.model.document import AnchorStyle, Document, Passage
from core.model.findings import Runbook
from tests.samples import alert, explanation, incident


def passage(
    text: str = "Check it.", url: str = "", document_id: str = "docs/runbooks/pool.md", title: str = "Pool"
) -> Passage:
    return passages_of(Document(document_id, "docs", "docs", title, text, url=url))[0]


def read(text: str, cause: str = "", url: str = "") -> Runbook:
    terms = frozenset(cause.split())
    section = best_section(sections_of([passage(text)]), terms)
    assert section is not None
    return read_section(section, terms, url)


# --- the page ---------------------------------------------------------------------------------------------------------


def test_an_address_leads_to_the_page_of_its_path_or_its_name() -> None:
    cases: list[tuple[str, str, str, bool]] = [
        ("https://a.example/x/y", "https://a.example/x/y", "docs/other.md", True),
        ("https://b.example/x/y", "https://a.example/x/y", "docs/other.md", False),
        ("/x/y", "https://a.example/x/y", "docs/other.md", True),
        ("https://a.example/x/z", "https://a.example/x/y", "docs/other.md", False),
        ("https://b.example/w/pool.html", "", "docs/pool.md", True),
        ("https://b.example/w/POOL", "", "docs/pool.md", True),
        ("https://b.example/w/my%20pool", "", "docs/my pool.md", True),
        ("https://b.example/pool/w", "", "docs/pool.md", False),
        ("https://b.example/w/db", "", "docs/db.md", False),  # too short to tell
        ("https://b.example/w/readme", "", "docs/readme.md", False),
        ("https://wiki.example/pages/123/Pool", "", "wiki/123", True),
        ("https://wiki.example/pages/124/Pool", "", "wiki/123", False),
        ("https://b.example", "", "docs/pool.md", False),
        ("", "", "docs/pool.md", False),
    ]
    for address, url, document_id, found in cases:
        assert is_at(address, passage(url=url, document_id=document_id)) is found, (address, url, document_id, found)


def test_a_title_names_an_alert_by_whole_words() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("PoolEmpty", "What to do about PoolEmpty", True),
        ("PoolEmpty", "Pool", False),
        ("Pool is empty at night", "Pool is empty", True),  # three words tell it
        ("Pool of till is empty at night", "Pool of till is empty", True),
        ("Pool is empty", "Pool is", False),
        ("DB", "DB", False),
        ("runbook", "runbook", False),
    ]
    for name, title, named in cases:
        search = RunbookSearch((name,))
        assert search.names(passage(title=title, document_id="docs/x1.md")) is named, (name, title, named)


@pytest.mark.parametrize("document_id", ["PoolEmpty.md", "docs/PoolEmpty.md", "docs/runbooks/kafka/PoolEmpty.md"])
def test_file_name_names_alert_however_deep_its_folder(document_id: str) -> None:
    assert RunbookSearch(("PoolEmpty",)).names(passage(title="Kafka", document_id=document_id))
    assert not RunbookSearch(("Kafka pool",)).names(passage(title="Other", document_id=f"kafka-pool/{document_id}"))


def test_a_search_knows_each_alert_once_and_the_first_address_and_the_terms_of_the_cause() -> None:
    alerts = (replace(alert(1), name="A"), replace(alert(2), name="A", runbook_url="https://x.example/a/b/c.md"))
    search = runbook_search(incident(alerts=alerts, title="It is slow"))
    assert search == RunbookSearch(("A",), "https://x.example/a/b/c.md", "It is slow")
    assert search.query == "A b c It is slow"
    assert "pool" in runbook_search(incident(explanation=explanation())).cause
    assert "hikaripool" in {term.lower() for term in runbook_search(incident(explanation=explanation())).cause}


# --- the section ------------------------------------------------------------------------------------------------------

SECTIONS = """\
# Pool

## Background

Check the history.

## Look

Check the zinc of the disk.

## Fix

Restart the zinc.

## Other

Restart the lock.
"""


@pytest.mark.parametrize("repeated", ["Restart it.", "- Restart it.", "```\nrestart it\n```"])
def test_block_that_two_passages_have_is_read_once(repeated: str) -> None:
    first, second = passage(f"## Fix\n\nWait.\n\n{repeated}"), passage(f"## Fix\n\n{repeated}\n\nCheck it.")
    sections = sections_of([first, second])
    assert [block.text for section in sections for block in section.blocks] == ["Wait.", repeated, "Check it."]


def test_the_section_that_fits_the_cause_best_is_read() -> None:
    cases: list[tuple[str, str]] = [
        ("", "Look"),  # the first with an instruction, and no background
        ("lock", "Other"),
        ("zinc", "Fix"),  # of two that fit, the remedy
        ("disk zinc", "Look"),  # which fits more
        ("unknown", "Look"),
        ("history", "Look"),
    ]
    for cause, heading in cases:
        section = best_section(sections_of([passage(SECTIONS)]), frozenset(cause.split()))
        assert section is not None, (cause, heading)
        assert section.heading == heading, (cause, heading)


def test_a_section_fits_by_the_number_of_terms_of_the_cause() -> None:
    section = next(each for each in sections_of([passage(SECTIONS)]) if each.heading == "Look")
    assert [fit(section, frozenset(cause.split())) for cause in ("", "zinc", "disk zinc lock")] == [0, 1, 2]


def test_links_to_other_pages_are_known_without_those_within_the_page_and_to_people() -> None:
    text = "See [a](a.md), [b](#b), [c](mailto:c@x.example) and [d](https://d.example)."
    [section] = sections_of([passage(text)])
    assert linked_addresses(section) == ["a.md", "https://d.example"]


# --- the step ---------------------------------------------------------------------------------------------------------


def test_an_instruction_has_the_command_within_it_or_beside_it() -> None:
    cases: list[tuple[str, str, str]] = [
        ("Run `pool show` now.", "Run pool show now.", "pool show"),
        ("Restart it, as `pool` says.", "Restart it, as pool says.", ""),
        ("Check the `pool --all` list.", "Check the pool --all list.", "pool --all"),
        ("Restart the `pool now` thing.", "Restart the pool now thing.", ""),  # neither run nor with an option
        ("It is slow. Restart it. Then wait.", "Restart it.", ""),
        ("Never restart it. Check the pool.", "Check the pool.", ""),
        ("- Check the pool.", "Check the pool.", ""),
        ("Check it:\n\n```\npool a\n  pool b\n```", "Check it:", "pool a\npool b"),
        ("```\npool a\n```\n\nCheck it.", "", "pool a"),  # the heading is the instruction, and there is none
        ("It is:\n\n```\npool a\n```\n\nThen restart it.", "Then restart it.", "pool a"),
        ("It is:\n\n```\npool a\n```\n\nThen restart it:", "Then restart it:", ""),
        ("Check it.\n\nIt is.\n\n```\npool a\n```", "Check it.", ""),
    ]
    for text, action, command in cases:
        runbook = read(text)
        assert (runbook.next_action, runbook.command) == (action, command), (text, action, command)
        assert has_command(sections_of([passage(text)])[0]) is bool(command), (text, action, command)


def test_of_several_instructions_the_one_nearest_to_the_cause_is_next() -> None:
    text = "Check the disk. Check the zinc pump. Check the zinc."
    assert read(text).next_action == "Check the disk."
    assert read(text, "zinc").next_action == "Check the zinc pump."
    assert read(text, "zinc pump").next_action == "Check the zinc pump."


def test_an_action_cites_its_page_with_the_alert_s_address_only_if_that_leads_there() -> None:
    there, elsewhere = read("Check it.", url="https://x.example/pool"), read("Check it.", url="https://x.example/other")
    assert there.citation is not None
    assert elsewhere.citation is not None
    assert (there.citation.url, elsewhere.citation.url) == ("https://x.example/pool", "")
    assert (there.url, elsewhere.url) == ("https://x.example/pool", "https://x.example/other")
    assert there.citation.quote == "Check it."


@pytest.mark.parametrize(
    ("style", "text", "anchor"),
    [
        (AnchorStyle.SLUG, "## Look\n\nAll is well.\n\n## Fix it now!\n\nRestart it.", "fix-it-now"),
        (AnchorStyle.SLUG, "## Fix\n\nAll is well.\n\n## Fix\n\nRestart it.", "fix-1"),
        (AnchorStyle.WITH_TITLE, "## Fix it\n\nRestart it.", "Pool-Fixit"),
        (AnchorStyle.SLUG, "Restart it.", ""),
    ],
)
def test_an_action_links_to_the_heading_that_it_stands_below(style: AnchorStyle, text: str, anchor: str) -> None:
    section = best_section(sections_of([replace(passage(text), anchors=style)]), frozenset())
    assert section is not None
    citation = read_section(section, frozenset(), "").citation
    assert citation is not None
    assert (citation.number, citation.anchor) == (1, anchor)


def test_a_long_instruction_and_a_long_command_are_cut() -> None:
    runbook = read(f"Check {'x' * 500}:\n\n```\n{'y' * 700}\n```")
    assert (len(runbook.next_action), len(runbook.command)) == (400, 600)
