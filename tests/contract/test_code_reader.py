"""The contract of CodeReader, over the fake and checkouts of four languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.tools import code_repository
from adapters.tools.code_repository import CodeRepositories
from core.model.errors import ToolUnavailable
from core.ports import CodeDefinition

PYTHON = """\
class Pool:
    def acquire(self, wait: float) -> Lease:
        lease = self.waiting.pop(0)
        return self.store.connect(wait)

def connect(host):
    return Client(host).open()
"""
JAVA = """\
package com.acme;
public class Pool {
  Lease acquire(Clock clock) { return new Lease(clock.now()); }
}
interface Store { void put(Key key); }
"""
GO = """\
package pool
type Pool struct { size int }
func (p *Pool) Acquire(c Clock) (*Lease, error) { return connect(p.size) }
func connect(size int) (*Lease, error) { return dial.Open(size) }
"""
TYPESCRIPT = """\
export class Pool {
  async acquire(wait: number): Promise<Lease> { return await this.store.connect(wait); }
}
export const connect = async (host: string) => new Client(host);
const size = 4;
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    for path, text in {
        "py/pool.py": PYTHON,
        "java/Pool.java": JAVA,
        "go/pool.go": GO,
        "ts/pool.ts": TYPESCRIPT,
    }.items():
        file = folder / path
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    return folder


async def found(folder: Path, *names: str) -> list[CodeDefinition]:
    return await CodeRepositories("code", {"shop": folder}).definitions(names)


@pytest.mark.parametrize(
    ("name", "path", "container", "line"),
    [
        ("acquire", "py/pool.py", "Pool", 2),
        ("connect", "py/pool.py", "", 6),
        ("acquire", "java/Pool.java", "Pool", 3),
        ("put", "java/Pool.java", "Store", 5),
        ("Acquire", "go/pool.go", "Pool", 3),
        ("connect", "go/pool.go", "", 4),
        ("acquire", "ts/pool.ts", "Pool", 2),
        ("connect", "ts/pool.ts", "", 4),
    ],
)
async def test_definitions_are_found_with_their_place(
    name: str, path: str, container: str, line: int, checkout: Path
) -> None:
    (definition,) = [each for each in await found(checkout, name) if each.path == path]
    assert (definition.container, definition.line, definition.repository) == (container, line, "shop")
    assert name in definition.text


async def test_a_class_is_a_definition_and_a_value_is_none(checkout: Path) -> None:
    assert [each.path for each in await found(checkout, "Pool", "size")] == [
        "go/pool.go",
        "java/Pool.java",
        "py/pool.py",
        "ts/pool.ts",
    ]


async def test_links_lead_nowhere(checkout: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "keys.py").write_text("def password(): return 'x'", encoding="utf-8")
    (checkout / "link.py").symlink_to(secret / "keys.py")
    (checkout / "folder").symlink_to(secret, target_is_directory=True)
    assert await found(checkout, "password") == []


async def test_dependencies_that_lie_in_the_checkout_are_not_read(checkout: Path) -> None:
    (checkout / "node_modules").mkdir()
    (checkout / "node_modules" / "lib.ts").write_text("function vendored() {}", encoding="utf-8")
    assert await found(checkout, "vendored") == []


async def test_files_that_no_person_wrote_and_broken_ones_do_no_harm(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "broken.py").write_bytes(b"def broken(:\n  \xff\x00 (((")
    (checkout / "huge.py").write_text("def huge(): ...\n" * 100, encoding="utf-8")
    monkeypatch.setattr(code_repository, "MAX_FILE", 1_000)
    assert await found(checkout, "huge") == []
    assert len(await found(checkout, "broken", "acquire")) >= 3


async def test_deeply_nested_code_is_read_without_recursion(checkout: Path) -> None:
    (checkout / "deep.py").write_text(f"def deep():\n    return {'f(' * 3_000}1{')' * 3_000}\n", encoding="utf-8")
    assert [each.name for each in await found(checkout, "deep")] == ["deep"]


async def test_a_checkout_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolUnavailable, match="missing of shop does not exist"):
        await found(tmp_path / "missing", "f")
