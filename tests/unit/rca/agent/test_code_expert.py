from __future__ import annotations

import json

import pytest

from core.model.errors import ModelUnavailable, ToolUnavailable
from core.model.language_model import ModelRequest
from core.model_calls.metered_model import Limits, MeteredModel
from core.rca.agent.actions import Snapshots
from core.rca.agent.experts import MAX_DEFINITIONS, MAX_TEXT, CodeExpert, qualified
from tests.cases import every_case
from tests.fakes.code import FakeCodeReader, definition
from tests.fakes.language_model import Script, ScriptedModel


@every_case(
    ("symbol", "parts"),
    [
        ("pool.(*Pool).Acquire", ("pool", "Pool", "Acquire")),
        ("com.acme.Pool$Lease#close", ("com", "acme", "Pool", "Lease", "close")),
        ("shop::pool", ("shop", "pool")),
        ("../../etc/passwd; rm -rf", ("etc", "rm")),
        ("", ()),
    ],
)
def test_a_name_is_parted_whatever_language_wrote_it(symbol: str, parts: tuple[str, ...]) -> None:
    assert qualified(symbol) == parts


def expert(code: FakeCodeReader, script: Script, limits: Limits | None = None) -> tuple[CodeExpert, Snapshots]:
    snapshots = Snapshots()
    model = MeteredModel(ScriptedModel(script, context=100_000), limits)
    return CodeExpert(model, ModelRequest(()), code, snapshots), snapshots


def reader(read_next: dict[str, list[str]], summary: str = "It waits for ever.") -> Script:
    """A model that suggests names by the definition that it reads."""

    def reply(request: ModelRequest) -> str:
        asked = request.messages[-1].text
        if "definition by definition" in asked:
            return json.dumps({"summary": summary})
        name = next(name for name in read_next if f"def {name}" in asked)
        return json.dumps({"analysis": f"{name} waits.", "read_next": read_next[name]})

    return reply


CODE = FakeCodeReader([definition("acquire"), definition("connect", path="shop/net.py"), definition("unrelated")])


async def test_the_model_suggests_what_to_read_next_until_only_external_names_are_left() -> None:
    analyst, snapshots = expert(CODE, reader({"acquire": ["connect"], "connect": ["acquire", "socket.create"]}))
    told = await analyst.call({"symbol": "acquire"})
    assert told == (
        "It waits for ever.\n"
        "Read: acquire in shop, shop/pool.py, line 1; connect in shop, shop/net.py, line 1.\n"
        "External, not read: socket.create."
    )
    assert set(snapshots.read.values()) == {"code of shop, shop/pool.py", "code of shop, shop/net.py"}


async def texts_read(code: FakeCodeReader, symbol: str, read_next: dict[str, list[str]] | None = None) -> list[str]:
    """Return the definitions that the model was shown."""
    analyst, snapshots = expert(code, lambda request: reader(read_next)(request) if read_next else "?")
    await analyst.call({"symbol": symbol})
    return list(snapshots.read)


async def test_functions_that_call_each_other_are_read_once() -> None:
    code = FakeCodeReader([definition("ping"), definition("pong")])
    assert len(await texts_read(code, "ping", {"ping": ["pong"], "pong": ["ping"]})) == 2


async def test_of_equal_names_the_one_of_the_named_class_is_read() -> None:
    code = FakeCodeReader(
        [
            definition("close", container=each, text=f"close of {each}", path=f"{each}.py")
            for each in ("Pool", "File", "Door")
        ]
    )
    (text,) = await texts_read(code, "Pool.close")
    assert "close of Pool" in text


async def test_a_name_that_many_define_is_not_guessed() -> None:
    code = FakeCodeReader([definition("close", path=f"{number}.py") for number in range(3)])
    assert await texts_read(code, "close") == []


async def test_where_the_method_is_inherited_the_class_is_read() -> None:
    code = FakeCodeReader([definition("Pool", text="class Pool(Base): ...")])
    (text,) = await texts_read(code, "Pool.acquire")
    assert "class Pool(Base)" in text


async def test_endless_code_is_read_within_limits() -> None:
    names = [f"f{number}" for number in range(60)]
    code = FakeCodeReader([definition(name) for name in names])
    following = {name: [f"f{number + 1}"] for number, name in enumerate(names)}
    assert len(await texts_read(code, "f0", dict(reversed(following.items())))) == MAX_DEFINITIONS


async def test_a_long_definition_is_shown_up_to_a_whole_line() -> None:
    (text,) = await texts_read(FakeCodeReader([definition("f", text="x = 1\n" * 1_000)]), "f")
    assert len(text) < MAX_TEXT + 200
    assert "6000 characters in all" in text


@pytest.mark.parametrize("said", ["?", '{"analysis": 1}', "[]"])
async def test_a_malformed_reading_ends_with_what_was_read(said: str) -> None:
    analyst, snapshots = expert(CODE, lambda _: said)
    assert "Read: acquire in shop" in await analyst.call({"symbol": "acquire"})
    assert len(snapshots.read) == 1


async def test_without_budget_no_code_is_read() -> None:
    analyst, snapshots = expert(CODE, reader({"acquire": []}), Limits(tokens=100))
    analyst.model.tokens, analyst.model.calls = 90, 1
    assert "no budget" in await analyst.call({"symbol": "acquire"})
    assert snapshots.read == {}


async def test_a_model_that_is_down_is_a_tool_that_is_down() -> None:
    def down(_: ModelRequest) -> str:
        raise ModelUnavailable("All servers are down.")

    analyst, _ = expert(CODE, down)
    with pytest.raises(ToolUnavailable, match="All servers are down"):
        await analyst.call({"symbol": "acquire"})
