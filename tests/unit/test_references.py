"""References in what is filed link, close and mention nothing."""

from __future__ import annotations

import re

from core.incidents.postmortem import _without_references, without_links
from tests.cases import every_case

JOINER = "\u2060"
ACTIVE = re.compile(
    r"[#@!]\w|&(?:num|commat);|^[ \t]*/[a-z]+\s*$|^[ \t]*/[a-z]+ |\b(?:GH|OPS|PAY_2)-\d|\b(?:fix|clos|resolv)(?:es|ed|e|ing)?:?\s+<?http"
    r"|\[[\w -]*(?:skip|no ci)[\w -]*\]|\*\*\*NO_CI|skip-checks:|https?://\S*/issues/",
    re.IGNORECASE | re.MULTILINE,
)


@every_case(
    "text",
    [
        "Fixes #12",
        "see GH-1 and gh-7",
        "Closes https://git.example/a/b/issues/3",
        "resolves: https://git.example/a/b/issues/3",
        "OPS-12 #close #time 3h",
        "PAY_2-9 is done",
        "thanks @ops !4",
        "fixed acme/ops#4",
        "It is over.\n/close\n/assign me",
        "  /label ~bug",
        "fixes &num;12, &commat;ops",
        "gate is down [skip ci]",
        "[CI Skip] gate",
        "gate [no ci] [skip actions][actions skip]",
        "***NO_CI*** gate",
        "[skip-ci] and [CF-Pages-Skip] and [skip_ci]",
        "gate [skip azurepipelines] [vercel skip] [skip netlify] [skip travis]",
        "skip-checks: true",
    ],
)
def test_a_reference_in_a_title_or_text_is_broken_and_reads_as_before(text: str) -> None:
    for shown in (without_links(text), _without_references(text)):
        assert not ACTIVE.search(shown)
        assert shown.replace(JOINER, "") == text
    assert without_links(without_links(text)) == without_links(text)


@every_case(
    "text",
    [
        "<https://git.example/a/b/issues/3>",
        "the till is slow: p99-1 us-east-1",
        "fixes nothing",
        "[there is no gate](https://x.example) to skip [here]",
        "array[0] skipped [skipped]",
    ],
)
def test_the_bots_own_links_and_plain_words_stay(text: str) -> None:
    assert _without_references(text) == text


def test_a_keyword_before_a_kept_address_closes_nothing() -> None:
    assert _without_references("Closes <https://git.example/a/b/issues/3>").startswith(f"Clos{JOINER}es <https://")
