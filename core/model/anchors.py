"""Link anchors of headings, by publishing platform."""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import quote

from core.knowledge.markdown import plain, slug

_GAP = re.compile(r"\s+")


class AnchorStyle(StrEnum):
    SLUG = "slug"  # code forges and static sites: `#roll-back-by-hand`
    CONFLUENCE_CLOUD = "confluence cloud"  # `#Roll-back-by-hand`
    CONFLUENCE_SERVER = "confluence server"  # `#Canaries-Rollbackbyhand`: the page's title and the heading


def anchor(style: AnchorStyle, title: str, heading: str, repeat: int = 0) -> str:
    """Return the fragment of a link to a heading, of which `repeat` earlier ones in the document have the same text."""
    match style:
        case AnchorStyle.SLUG:
            return f"{slug(heading)}-{repeat}" if repeat else slug(heading)
        case AnchorStyle.CONFLUENCE_CLOUD:
            name = _GAP.sub("-", plain(heading))
        case AnchorStyle.CONFLUENCE_SERVER:
            name = _GAP.sub("", f"{title}-{plain(heading)}")
    return quote(f"{name}.{repeat}" if repeat else name)
