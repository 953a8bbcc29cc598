"""Links to headings, where documents are published."""

from __future__ import annotations

import pytest

from core.knowledge.markdown import anchor
from core.model.document import AnchorStyle


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (AnchorStyle.SLUG, "roll-back-by-hand"),
        (AnchorStyle.CONFLUENCE_CLOUD, "Roll-back-by-hand%21"),
        (AnchorStyle.CONFLUENCE_SERVER, "Canaryreleases-Rollbackbyhand%21"),
    ],
)
def test_a_heading_is_named_as_the_place_names_it(style: AnchorStyle, expected: str) -> None:
    assert anchor(style, "Canary releases", "Roll back `by hand`!") == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (AnchorStyle.SLUG, "verify-2"),
        (AnchorStyle.CONFLUENCE_CLOUD, "Verify.2"),
        (AnchorStyle.CONFLUENCE_SERVER, "Till-Verify.2"),
    ],
)
def test_the_third_heading_of_the_same_text_has_a_name_of_its_own(style: AnchorStyle, expected: str) -> None:
    assert anchor(style, "Till", "Verify", 2) == expected
