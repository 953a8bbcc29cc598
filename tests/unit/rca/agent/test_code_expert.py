from __future__ import annotations

import pytest

from core.rca.agent.code_expert import MAX_DEFINITIONS, MAX_ROUNDS, MAX_TEXT, CodeExpert, qualified
from tests.fakes.code import FakeCodeReader, definition


async def read(code: FakeCodeReader, symbol: str) -> str:
    return await CodeExpert(code).call({"symbol": symbol})


async def test_it_reads_on_through_what_is_called_until_only_external_names_are_left() -> None:
    code = FakeCodeReader(
        [
            definition("acquire", "connect", container="Pool", text="def acquire(self): connect()"),
            definition("connect", "socket.create", path="shop/net.py", text="def connect(): socket.create()"),
            definition("unrelated"),
        ]
    )
    told = await read(code, "shop.pool.Pool.acquire")
    assert told == (
        "Pool.acquire in shop, shop/pool.py, line 1:\ndef acquire(self): connect()\n\n"
        "connect in shop, shop/net.py, line 1:\ndef connect(): socket.create()\n\n"
        "External, not read: socket.create."
    )


async def test_a_name_that_no_repository_defines_is_external() -> None:
    assert "external dependency" in await read(FakeCodeReader(), "java.net.Socket.connect")


async def test_functions_that_call_each_other_are_read_once() -> None:
    code = FakeCodeReader([definition("ping", "pong"), definition("pong", "ping")])
    assert (await read(code, "ping")).count("def ping") == 1
    assert len(code.asked) == 2


async def test_of_equal_names_the_one_of_the_named_class_is_read() -> None:
    code = FakeCodeReader(
        [
            definition("close", container=each, text=f"close of {each}", path=f"{each}.py")
            for each in ("Pool", "File", "Door")
        ]
    )
    told = await read(code, "Pool.close")
    assert "close of Pool" in told
    assert "close of File" not in told


async def test_a_name_that_many_define_is_not_guessed() -> None:
    code = FakeCodeReader([definition("close", path=f"{number}.py") for number in range(3)])
    assert "is not defined" in await read(code, "close")


async def test_where_the_method_is_inherited_the_class_is_read() -> None:
    code = FakeCodeReader([definition("Pool", text="class Pool(Base): ...")])
    assert "class Pool(Base)" in await read(code, "Pool.acquire")


async def test_endless_code_is_read_within_limits() -> None:
    chain = [definition(f"f{number}", *(f"f{other}" for other in range(300))) for number in range(300)]
    code = FakeCodeReader(chain)
    told = await read(code, "f0")
    assert told.count("line 1:") == MAX_DEFINITIONS
    assert len(code.asked) <= MAX_ROUNDS


async def test_a_long_definition_is_shown_up_to_a_whole_line() -> None:
    told = await read(FakeCodeReader([definition("f", text="x = 1\n" * 1_000)]), "f")
    assert len(told) < MAX_TEXT + 200
    assert "6000 characters in all" in told


@pytest.mark.parametrize(
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
