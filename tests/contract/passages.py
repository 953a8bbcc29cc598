"""Passages as they are given to an index."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import numpy as np

from core.model.conversation import PUBLIC
from core.model.document import DocumentKind, Passage
from core.ports import EncodedPassage, SparseVector

EVERYBODY = frozenset({PUBLIC})


def point_id(document: str, number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{document}#{number}"))


def encoded(
    document: str,
    number: int,
    lexical: dict[int, float],
    dense: list[float],
    readers: frozenset[str] = EVERYBODY,
    content_hash: str = "h1",
) -> EncodedPassage:
    passage = Passage(
        id=point_id(document, number),
        document_id=document,
        number=number,
        title="Ein Titel – タイトル",
        heading="Heading",
        text=f"{document} passage {number}\n\n```\ncode\n```",
        family="runbooks",
        kind=DocumentKind.PAGE,
        url="https://docs.example/a",
        owner="payments",
        updated_at=datetime(2026, 3, 1, tzinfo=UTC),
        readers=readers,
        content_hash=content_hash,
    )
    weights = SparseVector(tuple(lexical), tuple(lexical.values()))
    return EncodedPassage(passage, weights, np.array([dense] if dense else [], np.float32))
