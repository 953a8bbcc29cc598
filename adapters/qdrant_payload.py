"""Passages ↔ the payload of a Qdrant point, the same for the embedded engine and a server."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.knowledge.anchors import AnchorStyle
from core.knowledge.document import DocumentKind, Passage
from core.knowledge.windows import WindowedPassage
from core.ports import EncodedPassage, ScoredPassage

DENSE = "dense"  # name of the dense vector
LEXICAL = "lexical"  # name of the sparse vector
WINDOWS = "windows"  # payload field that only searches read
KEYWORD_FIELDS = ("readers", "document_id", "source")  # payload fields that are filtered by


def to_payload(encoded: EncodedPassage) -> dict[str, Any]:
    passage = encoded.passage
    return {
        "source": passage.document_id.partition("/")[0],
        "document_id": passage.document_id,
        "number": passage.number,
        "title": passage.title,
        "heading": passage.heading,
        "text": passage.text,
        "family": passage.family,
        "kind": str(passage.kind),
        "url": passage.url,
        "owner": passage.owner,
        "updated_at": passage.updated_at.isoformat() if passage.updated_at else None,
        "readers": sorted(passage.readers),
        "content_hash": passage.content_hash,
        "part_urls": list(passage.part_urls),
        "anchors": str(passage.anchors),
        WINDOWS: b2a_base64(encoded.windows.to_bytes(), newline=False).decode(),
    }


def from_payload(point_id: str, payload: Mapping[str, Any]) -> Passage:
    return Passage(
        id=point_id,
        document_id=payload["document_id"],
        number=payload["number"],
        title=payload["title"],
        heading=payload["heading"],
        text=payload["text"],
        family=payload["family"],
        kind=DocumentKind(payload["kind"]),
        url=payload["url"],
        owner=payload["owner"],
        updated_at=datetime.fromisoformat(payload["updated_at"]) if payload["updated_at"] else None,
        readers=frozenset(payload["readers"]),
        content_hash=payload["content_hash"],
        part_urls=tuple(payload.get("part_urls", ())),
        anchors=AnchorStyle(payload.get("anchors", AnchorStyle.SLUG)),
    )


def scored(point_id: str, payload: Mapping[str, Any], score: float) -> ScoredPassage:
    return ScoredPassage(
        from_payload(point_id, payload), WindowedPassage.from_bytes(a2b_base64(payload[WINDOWS])), score
    )
