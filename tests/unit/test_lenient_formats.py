"""JSON and text with byte order marks and lone surrogates."""

from __future__ import annotations

import codecs
import json

import pytest

from core.model.text import decode_text, json_text, load_json
from tests.cases import every_case

TEXT = '{"title": "Zählung"}'


@every_case(
    "body",
    [
        codecs.BOM_UTF8 + TEXT.encode(),
        TEXT.encode("utf-16"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        TEXT.encode("utf-32"),
        TEXT.encode("utf-16-le"),
        "\ufeff" + TEXT,
        TEXT,
    ],
)
def test_json_is_read_in_every_encoding_with_and_without_a_mark(body):
    assert load_json(body) == {"title": "Zählung"}


@every_case(
    ("written", "text"),
    [
        (r'"a\ud83db"', "a\ufffdb"),
        (r'"a\uDC00"', "a\ufffd"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"C:\\ud83d"', "C:\\ud83d"),
        (r'"\\\ud83d"', "\\\ufffd"),
        (b'"a\xed\xa0\xbdb"', "a\ufffd\ufffd\ufffdb"),
        ('"a\ud83db"', "a\ufffdb"),
    ],
)
def test_half_of_a_surrogate_pair_is_replaced_and_nothing_else(written, text):
    assert load_json(written) == text
    assert json.loads(json_text(written)) == text
    json_text(written).encode()  # can be stored


@pytest.mark.parametrize("body", [b"", b"{", "no JSON", "[" * 100_000])
def test_what_is_not_json_is_a_value_error(body):
    with pytest.raises(ValueError, match=r"."):
        load_json(body)


def test_text_without_a_mark_is_read_as_utf_8_though_it_begins_with_zeros():
    assert decode_text(b"\0\0\0error\xff") == "\0\0\0error\ufffd"
    assert decode_text("error".encode("utf-16")) == "error"
