"""Payloads of Qdrant points, and the reading that goes through them, for the embedded engine and a server."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from core.model.document import AnchorStyle, DocumentKind, Passage
from core.ports import EncodedPassage

DENSE = "dense"  # name of the dense vectors
LEXICAL = "lexical"  # name of the sparse vector
KEYWORD_FIELDS = ("readers", "document_id", "source")  # payload fields used in filters


class Points:
    """The part of a PassageIndex that goes through its points."""

    def _scroll(self, conditions: Mapping[str, Collection[Any]]) -> AsyncIterator[Passage]:
        """Yield the passages that have one of the values of each field."""
        raise NotImplementedError

    async def passages_of(self, document_id: str, readers: frozenset[str]) -> list[Passage]:
        passages = self._scroll({"document_id": [document_id], "readers": readers})
        return sorted([passage async for passage in passages], key=lambda passage: passage.number)

    def scan(self, document_ids: Sequence[str] | None = None) -> AsyncIterator[Passage]:
        return self._scroll({} if document_ids is None else {"document_id": document_ids})

    async def content_hashes(self, source: str) -> dict[str, str]:
        firsts = self._scroll({"source": [source], "number": [1]})
        return {passage.document_id: passage.content_hash async for passage in firsts}


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
        "repeats": list(passage.repeats),
        "missing": list(passage.missing),
        "meaning": b64encode(passage.meaning).decode(),
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
        part_urls=tuple(payload["part_urls"]),
        anchors=AnchorStyle(payload["anchors"]),
        repeats=tuple(payload["repeats"]),
        meaning=b64decode(payload["meaning"]),
        missing=tuple(payload["missing"]),
    )


def stored(
    payloads: Mapping[str, Mapping[str, Any]], passage_ids: Sequence[str], readers: frozenset[str]
) -> list[Passage]:
    """Return the passages with these ids, in order, that have a payload and are readable by one of `readers`."""
    return [
        from_payload(key, payload)
        for key in passage_ids
        if (payload := payloads.get(key)) and not readers.isdisjoint(payload["readers"])
    ]
