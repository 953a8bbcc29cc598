"""Catalogues of teams: the same from a folder and from a repository that is fetched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from adapters.catalogues import files as files_module
from adapters.catalogues.backstage import read_backstage
from adapters.catalogues.codeowners import read_codeowners
from adapters.catalogues.files import CatalogueFiles, FolderFiles
from adapters.sources.git_repository import GitRepositorySource, Repository, RepositoryFiles
from core.model.conversation import Platform
from core.model.errors import SourceUnavailable
from tests.contract.source_worlds.repository import git

CATALOGUE = """\
apiVersion: backstage.io/v1alpha1
kind: Location
metadata: {name: root}
spec:
  targets: [./teams/org.yaml, ../../etc/passwd, https://elsewhere.example/catalog-info.yaml]
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: till}
spec:
  type: service
  owner: group:default/payments
  dependsOn: ["resource:default/pg-till", "component:shelf"]
  consumesApis: [stock]
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: stock-keeper}
spec: {type: service, owner: fleet, providesApis: [stock]}
---
apiVersion: backstage.io/v1alpha1
kind: Resource
metadata: {name: pg-till}
spec: {type: database, owner: payments}
---
apiVersion: backstage.io/v1alpha1
kind: Domain
metadata: {name: checkout}
spec: {owner: payments}
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: toy}
spec: {type: website, owner: "User:default/ana"}
"""
GROUPS = """\
apiVersion: backstage.io/v1alpha1
kind: Group
metadata:
  name: payments
  title: Payments
  description: Charges and refunds.
  annotations:
    plumbline/channel: pay
    plumbline/slack-user-group: S0PAY
    plumbline/teams-tag: MjQzMmI1N2I=
    other: {nested: [1]}
spec:
  type: team
  profile: {displayName: Payments}
  members: [ana, "user:default/bo"]
  children: []
"""

Place = Callable[[dict[str, str]], CatalogueFiles]


@pytest.fixture(params=["folder", "repository"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Writes files, and reads them in one way or the other."""
    folder = tmp_path / "catalogue"

    def written(files: dict[str, str]) -> CatalogueFiles:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        if request.param == "folder":
            return FolderFiles(folder)
        git(folder, "init", "--quiet", "--initial-branch=main")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message=all")
        return RepositoryFiles(GitRepositorySource("docs", Repository(tmp_path / "copy.git", folder.as_uri())))

    return written


async def test_backstage_says_which_teams_there_are_what_they_run_and_how_they_are_reached(place: Place) -> None:
    found = await read_backstage(place({"catalog-info.yaml": CATALOGUE, "teams/org.yaml": GROUPS}))
    teams = {team.id: team for team in found.teams}
    assert teams.keys() == {"payments", "fleet"}
    payments = teams["payments"]
    assert (payments.name, payments.document, payments.channel) == ("Payments", "Charges and refunds.", "pay")
    assert payments.services == {"till", "pg-till", "checkout"}
    assert payments.people == {"ana", "bo"}
    assert payments.mentions == {Platform.SLACK: "S0PAY", Platform.TEAMS: "tag:MjQzMmI1N2I="}


async def test_backstage_says_which_service_calls_which(place: Place) -> None:
    found = await read_backstage(place({"deep/down/catalog-info.yml": CATALOGUE}))
    assert found.dependencies == {"till": ("pg-till", "shelf", "stock-keeper")}


async def test_a_wrong_file_hides_none_of_the_others(place: Place) -> None:
    wrong = {"a/catalog-info.yaml": "kind: [", "b/catalog-info.yaml": "just text", "c/catalog-info.yaml": GROUPS}
    found = await read_backstage(place(wrong))
    assert [team.id for team in found.teams] == ["payments"]


async def test_no_catalogue_at_all_is_said(place: Place) -> None:
    files = place({"README.md": "nothing"})
    with pytest.raises(SourceUnavailable, match="no entity"):
        await read_backstage(files)
    with pytest.raises(SourceUnavailable, match="no CODEOWNERS file"):
        await read_codeowners(files, frozenset())


async def test_codeowners_names_groups_as_teams_and_whose_each_path_is(place: Place) -> None:
    text = "* @acme/platform\n/till/ @acme/payments @ana\n"
    found = await read_codeowners(place({"docs/CODEOWNERS": "* @x/y", ".github/CODEOWNERS": text}), frozenset({"till"}))
    assert [team.id for team in found.teams] == ["platform", "payments"]
    (code,) = found.code
    assert code.services == {"till"}
    assert [rule.owners for rule in code.rules_for("till/ledger.py")] == [("@acme/payments", "@ana")]


async def test_only_wanted_files_are_read(place: Place) -> None:
    read = await place({"a.txt": "A", "b/c.txt": "C"}).read(lambda path: path.name == "c.txt")
    assert dict(read) == {PurePosixPath("b/c.txt"): "C"}


async def test_too_many_files_are_a_mistake_that_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MAX_FILES", 1)
    with pytest.raises(SourceUnavailable, match=r"more than 1|at most 1"):
        await place({"a.txt": "A", "b.txt": "B"}).read(lambda _: True)


async def test_what_was_fetched_before_is_read_where_the_repository_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "catalogue"
    folder.mkdir()
    (folder / "CODEOWNERS").write_text("* @acme/platform\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=all")
    files = RepositoryFiles(GitRepositorySource("docs", Repository(tmp_path / "copy.git", folder.as_uri())))
    await read_codeowners(files, frozenset())
    folder.rename(tmp_path / "gone")
    assert (await read_codeowners(files, frozenset())).teams


async def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("heliotrope")
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue" / "CODEOWNERS").symlink_to(tmp_path / "secret.txt")
    assert await FolderFiles(tmp_path / "catalogue").read(lambda _: True) == {}


async def test_a_file_whose_aliases_would_fill_the_memory_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "catalog-info.yaml").write_text(CATALOGUE)
    laughs = "".join(f"  - &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 30))
    bomb = f"x:\n  - &a0 [lol, lol]\n{laughs}kind: Group\nmetadata: {{name: bomb}}\nspec: {{members: [*a29]}}\n"
    (tmp_path / "bomb").mkdir()
    (tmp_path / "bomb" / "catalog-info.yaml").write_text(bomb)
    found = await read_backstage(FolderFiles(tmp_path))
    assert "bomb" not in {team.id for team in found.teams}
    assert "payments" in {team.id for team in found.teams}


async def test_an_entity_that_is_wrong_hides_no_other_of_its_file_and_an_empty_field_is_no_mistake(
    tmp_path: Path,
) -> None:
    (tmp_path / "catalog-info.yaml").write_text(
        """\
kind: Group
metadata: {name: payments, description: , annotations: }
spec: {type: team, members: }
---
kind: Component
metadata: {name: [till]}
spec: {owner: payments}
---
kind: Component
metadata: {name: seats}
spec: {owner: bookings}
"""
    )
    found = await read_backstage(FolderFiles(tmp_path))
    assert {team.id: set(team.services) for team in found.teams} == {"payments": set(), "bookings": {"seats"}}


async def test_a_name_that_is_written_in_another_case_means_the_same(tmp_path: Path) -> None:
    (tmp_path / "catalog-info.yaml").write_text(
        """\
kind: Group
metadata: {name: payments}
---
kind: Component
metadata: {name: till}
spec: {owner: "group:default/Payments", dependsOn: ["component:Shelf"], consumesApis: [Stock]}
---
kind: Component
metadata: {name: shelf}
spec: {owner: Fleet, providesApis: [stock]}
---
kind: Component
metadata: {name: van}
spec: {owner: fleet}
"""
    )
    found = await read_backstage(FolderFiles(tmp_path))
    assert {team.id: set(team.services) for team in found.teams} == {"payments": {"till"}, "Fleet": {"shelf", "van"}}
    assert found.dependencies == {"till": ("shelf",)}
