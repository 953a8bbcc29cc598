"""The address that `/mcp` gives for itself, from the public address that an operator wrote."""

from __future__ import annotations

import pytest

from adapters.protected_resource import resource_at


@pytest.mark.parametrize(
    ("public_url", "resource"),
    [
        ("https://bot.example", "https://bot.example/mcp"),
        ("https://bot.example/", "https://bot.example/mcp"),
        ("https://bot.example:8443/plumbline/?a=b#c", "https://bot.example:8443/plumbline/mcp"),
        ("https://operator:secret@bot.example", "https://bot.example/mcp"),
        ("http://[::1]:8080", "http://[::1]:8080/mcp"),
        ('https://bot.example/a"b', "https://bot.example/a%22b/mcp"),
    ],
)
def test_only_scheme_host_port_and_path_of_the_public_address_are_shown(public_url: str, resource: str) -> None:
    found = resource_at(public_url)
    assert found.metadata["resource"] == resource
    well_known = resource.removesuffix("/mcp") + "/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{well_known}"' in found.challenge(wrong_token=False)


@pytest.mark.parametrize(
    "public_url", ["", "bot.example", "/plumbline", "ftp://bot.example", "https://", "https://a:b"]
)
def test_without_an_absolute_address_there_is_no_metadata_and_the_challenge_names_none(public_url: str) -> None:
    found = resource_at(public_url)
    assert found.metadata == {}
    assert found.challenge(wrong_token=True) == 'Bearer realm="plumbline", error="invalid_token"'
