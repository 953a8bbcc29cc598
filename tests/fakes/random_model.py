"""A tiny language model with random weights: it says nothing of sense, and works and costs as a trained one does.

Its vocabulary is the 256 bytes, some words made of them by merges, so that a text has more than one spelling in tokens,
and the markers of its chat template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, PoolingType, TokenType
from gguf.vocab import bytes_to_unicode
from numpy.typing import NDArray

START, END = "<|start|>", "<|end|>"
MARKERS = (START, END, "<|system|>", "<|user|>", "<|assistant|>")
WORDS = ("yes", "no", "likely", "the", "and", '":', '",', '{"')
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# One with tools, whose calls are JSON without markers, as in Llama 3: a server forces a call from the first brace on.
CALLING_TEMPLATE = (
    "{% if tools %}<|system|>You have these functions:{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n"
    'Respond with {"name": function name, "parameters": dictionary of argument name and its value}.<|end|>{% endif %}'
    "{% for message in messages %}{% if message.role == 'tool' %}<|user|>{{ message.content }}<|end|>"
    "{% elif message.tool_calls %}<|assistant|>"
    '{"name": "{{ message.tool_calls[0].function.name }}", '
    '"parameters": {{ message.tool_calls[0].function.arguments | tojson }}}<|end|>'
    "{% else %}<|{{ message.role }}|>{{ message.content or '' }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CLOSING = 1.5  # weight of the quote in the first channel: strings end as soon as those of a trained model
OPENING = 8.0  # of the brace, where there are tools
SPREAD = 3.0  # standard deviation of the logits, about: enough that the words of a reply differ in probability


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a model. The default makes a file of 4 MB."""

    layers: int = 4
    width: int = 128
    heads: int = 4
    feed_forward: int = 352
    context: int = 16_384  # tokens


def write_random_model(path: Path, shape: Shape | None = None, seed: int = 0, *, calls: bool = False) -> Path:
    """Write a GGUF file and return its path. The same shape and seed make the same model.

    With `calls`, its template has tools, and it writes a brace wherever it may: so it begins with its call.
    """
    shape = shape or Shape()
    writer = GGUFWriter(path, "llama")
    writer.add_name("random")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_pooling_type(PoolingType.MEAN)  # of embeddings, where a server is asked for them
    tokens = _add_vocabulary(writer, CALLING_TEMPLATE if calls else TEMPLATE)
    for name, weights in _weights(
        shape, tokens, np.random.default_rng(seed), {'"': CLOSING} | ({"{": OPENING} if calls else {})
    ).items():
        writer.add_tensor(f"{name}.weight", weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: GGUFWriter, template: str) -> int:
    """Bytes, words with the beginnings that they are merged from, markers. Returns how many tokens there are."""
    letters = bytes_to_unicode()
    texts, merges = list(letters.values()), list[str]()
    for word in WORDS:
        spelling = "".join(letters[byte] for byte in word.encode())
        for end in range(2, len(spelling) + 1):
            if spelling[:end] not in texts:
                texts.append(spelling[:end])
                merges.append(f"{spelling[: end - 1]} {spelling[end - 1]}")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*texts, *MARKERS])
    writer.add_token_types([TokenType.NORMAL] * len(texts) + [TokenType.CONTROL] * len(MARKERS))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(len(texts) + MARKERS.index(START))
    writer.add_eos_token_id(len(texts) + MARKERS.index(END))
    writer.add_add_bos_token(value=False)
    writer.add_chat_template(template)
    return len(texts) + len(MARKERS)


def _weights(
    shape: Shape, tokens: int, random: np.random.Generator, frequent: Mapping[str, float]
) -> dict[str, NDArray[np.float32]]:
    """Every matrix keeps the size of what goes through it, so that the logits spread alike in any shape."""

    def matrix(rows: int, columns: int, spread: float = 1.0) -> NDArray[np.float32]:
        return random.normal(0, spread / np.sqrt(columns), (rows, columns)).astype(np.float32)

    width, ones = shape.width, np.ones(shape.width, np.float32)
    embedding, output = random.normal(0, 1, (tokens, width)).astype(np.float32), matrix(tokens, width, SPREAD)
    embedding[:, 0] = 4.0  # the first channel is the same for every token, and no layer writes to it
    for each, weight in frequent.items():
        output[list(bytes_to_unicode()).index(ord(each)), 0] = weight
    weights = {"token_embd": embedding, "output_norm": ones, "output": output}
    for layer in range(shape.layers):
        weights |= {
            f"blk.{layer}.attn_norm": ones,
            f"blk.{layer}.ffn_norm": ones,
            **{f"blk.{layer}.attn_{part}": matrix(width, width) for part in ("q", "k", "v", "output")},
            f"blk.{layer}.ffn_gate": matrix(shape.feed_forward, width),
            f"blk.{layer}.ffn_up": matrix(shape.feed_forward, width),
            f"blk.{layer}.ffn_down": matrix(width, shape.feed_forward),
        }
        for writer in ("attn_output", "ffn_down"):
            weights[f"blk.{layer}.{writer}"][0] = 0.0
    return weights
