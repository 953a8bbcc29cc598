"""The next action that a runbook gives: of the right page, the right section, with its own command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.runbook import (
    best_section,
    linked_addresses,
    read_section,
    runbook_search,
    sections_of,
)
from core.knowledge.passages import passages_of
from core.model.document import Document, Passage
from core.model.incident import Incident
from tests.cases import every_case
from tests.samples import alert, explanation, hypothesis, incident

PAGE = """\
# PoolExhausted

Fires when requests wait for a connection.

## Is it us

```
topk(5, wait_seconds)
```

Look at the panel *Upstream*. If it has risen, go to [the outage page](outage.md).

## Pool too small

Check what the maximum is before you blame the database:

```
show pool
```

If it is not 40, somebody changed the pool size: revert the commit.

## Certificates

1. Renew the certificate with `certctl renew --all`.

## What not to do

Restart all pods at once and the pool size stays wrong.
"""


def page(text: str = PAGE, url: str = "", name: str = "handbook/runbooks/pool.md") -> list[Passage]:
    return passages_of(Document(name, "handbook", "handbook", "Runbook: PoolExhausted", text, url=url))


def found(cause: str) -> Incident:
    evidence = replace(hypothesis(), cause=cause, evidence=())
    return incident(explanation=explanation(hypotheses=(evidence,)))


def quoted(subject: Incident) -> tuple[str, str, str]:
    section = best_section(sections_of(page()), runbook_search(subject).cause)
    assert section is not None
    runbook = read_section(section, runbook_search(subject).cause, "")
    assert runbook.citation is not None
    assert runbook.citation.quote.replace("`", "").replace("*", "") == runbook.next_action
    return runbook.citation.heading, runbook.next_action, runbook.command


def test_before_a_cause_is_known_the_first_step_of_the_page_is_quoted() -> None:
    assert quoted(incident()) == ("Is it us", "Is it us", "topk(5, wait_seconds)")


def test_the_section_about_the_cause_is_quoted_with_the_command_that_stands_beside_its_instruction() -> None:
    heading, action, command = quoted(found("CHG-1 lowered the maximum pool size from 40 to 4"))
    assert (heading, command) == ("Pool too small", "show pool")
    assert action == "If it is not 40, somebody changed the pool size: revert the commit."
    assert quoted(found("The certificate expired"))[2] == "certctl renew --all"


def test_what_must_not_be_done_is_never_quoted() -> None:
    sections = sections_of(page("# A\n\n## What not to do\n\nRestart the pool.\n\n## Pool\n\nDo not restart the pool."))
    assert best_section(sections, runbook_search(found("The pool is too small")).cause) is None


@pytest.mark.parametrize(
    ("url", "at"),
    [
        ("https://handbook.example/runbooks/pool", ""),
        ("https://git.example/ops/blob/main/runbooks/pool.md#pool-too-small", ""),
        ("https://wiki.example/x?page=7", "https://wiki.example/x?page=7"),
    ],
)
def test_a_page_is_found_by_the_address_that_the_alert_gives(url: str, at: str) -> None:
    named = replace(incident(), alerts=(replace(alert(), name="X", runbook_url=url),))
    assert runbook_search(named).names(page(url=at)[0])
    other = replace(incident(), alerts=(replace(alert(), name="X", runbook_url="https://handbook.example/runbooks/x"),))
    assert not runbook_search(other).names(page()[0])


def test_a_page_is_found_by_the_name_of_the_alert_in_its_title() -> None:
    assert runbook_search(incident(alerts=(replace(alert(), name="PoolExhausted"),))).names(page()[0])
    assert not runbook_search(incident(alerts=(replace(alert(), name="Pool"),))).names(page()[0])


def test_the_pages_that_a_section_leads_to_are_known() -> None:
    assert [linked_addresses(section) for section in sections_of(page())][1] == ["outage.md"]


def test_a_section_is_whole_where_passages_overlap() -> None:
    long = "# P\n\n## Steps\n\n" + "\n\n".join(f"Run `step --number {n}` and wait {'x ' * 60}." for n in range(40))
    parts = page(long)
    assert len(parts) > 1
    (section,) = [each for each in sections_of(parts) if each.heading == "Steps"]
    assert len(section.blocks) == 40


@every_case(
    ("name", "title", "is_named"),
    [
        ("RouterErrorRatioTooHigh", "Router error ratio too high", True),
        ("SMS delays", "sms-delays-pelican", True),
        ("sms_delays_pelican (eu)", "SMS delays Pelican", True),
        ("KubePodCrashLooping", "Runbook: kube_pod_crash_looping", True),
        ("RouterErrorRatioTooHigh", "Router error ratio too low", False),
        ("SMS delays", "Delays of SMS", False),
        ("HighLatencyOfRouter", "High latency", False),
    ],
)
def test_an_alert_names_its_page_however_the_two_are_written(name: str, title: str, is_named: bool) -> None:
    search = runbook_search(incident(alerts=(replace(alert(), name=name, runbook_url=""),)))
    assert search.names(replace(page(name="wiki/1.md")[0], title=title)) is is_named
    file = f"{'-'.join(title.split()).lower()}.md"
    assert search.names(replace(page(name=f"wiki/{file}")[0], title="Untold")) is is_named
