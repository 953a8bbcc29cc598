"""Links to headings, where documents are published."""

from __future__ import annotations

import pytest

from core.knowledge.markdown import anchor
from core.model.document import AnchorStyle


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (AnchorStyle.SLUG, "roll-back-by-hand"),
        (AnchorStyle.HYPHENS, "Roll-back-by-hand%21"),
        (AnchorStyle.WITH_TITLE, "Canaryreleases-Rollbackbyhand%21"),
    ],
)
def test_a_heading_is_named_as_the_place_names_it(style: AnchorStyle, expected: str) -> None:
    assert anchor(style, "Canary releases", "Roll back `by hand`!") == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (AnchorStyle.SLUG, "verify-2"),
        (AnchorStyle.HYPHENS, "Verify.2"),
        (AnchorStyle.WITH_TITLE, "Till-Verify.2"),
    ],
)
def test_the_third_heading_of_the_same_text_has_a_name_of_its_own(style: AnchorStyle, expected: str) -> None:
    assert anchor(style, "Till", "Verify", 2) == expected
