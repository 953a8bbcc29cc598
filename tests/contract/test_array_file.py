"""What is learned in a file: what may have become of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.array_file import ArrayFile
from adapters.array_format import ArrayFormat
from adapters.encoder_format import ENCODER
from adapters.owner_model_format import OWNER_MODEL


@pytest.mark.parametrize("form", [ENCODER, OWNER_MODEL], ids=["encoder", "owner model"])
@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
async def test_a_damaged_file_is_as_none(tmp_path: Path, content: bytes, form: ArrayFormat[object]) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    assert await ArrayFile(path, form).load() is None
