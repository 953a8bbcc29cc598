from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np

from adapters.diagrams import reliability_svg, summary

SAID = np.repeat([0.2, 0.6, 0.9], 20)
RIGHT = np.tile([1.0, 0.0, 1.0, 1.0], 15)
SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_for_the_page_has_a_point_a_bin_and_says_what_each_holds() -> None:
    svg = ET.fromstring(reliability_svg("Owners", SAID, RIGHT))
    assert len(svg.findall(f".//{SVG}circle")) == 3
    assert [each.text for each in svg.findall(f".//{SVG}title")] == [
        "stated 20 %, right 75 % of 20",
        "stated 60 %, right 75 % of 20",
        "stated 90 %, right 75 % of 20",
    ]


def test_a_title_from_outside_stays_text() -> None:
    svg = ET.fromstring(reliability_svg('"><script>alert(1)</script>', SAID, RIGHT))
    assert svg.find(f".//{SVG}script") is None
    assert '"><script>alert(1)</script>' in svg.itertext()


def test_the_page_needs_to_allow_no_inline_style() -> None:
    assert "style" not in reliability_svg("Owners", SAID, RIGHT)


def test_the_summary_names_the_error_and_what_chance_alone_would_make() -> None:
    assert summary(SAID, RIGHT).startswith("60 outcomes · off by 28.3 %; by chance alone ")
    assert summary(np.array([0.5]), np.array([1.0])) == "1 outcome · off by 50.0 %; by chance alone 50.0 %"
