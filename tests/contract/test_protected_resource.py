"""The address that `/mcp` gives for itself, from the public address that an operator wrote."""

from __future__ import annotations

from adapters.protected_resource import resource_at


def test_only_scheme_host_port_and_path_of_the_public_address_are_shown() -> None:
    cases: list[tuple[str, str]] = [
        ("https://bot.example", "https://bot.example/mcp"),
        ("https://bot.example/", "https://bot.example/mcp"),
        ("https://bot.example:8443/plumbline/?a=b#c", "https://bot.example:8443/plumbline/mcp"),
        ("https://operator:secret@bot.example", "https://bot.example/mcp"),
        ("http://[::1]:8080", "http://[::1]:8080/mcp"),
        ('https://bot.example/a"b', "https://bot.example/a%22b/mcp"),
    ]
    for public_url, resource in cases:
        found = resource_at(public_url)
        assert found.metadata["resource"] == resource, (public_url, resource)
        well_known = resource.removesuffix("/mcp") + "/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{well_known}"' in found.challenge(wrong_token=False), (public_url, resource)


def test_without_an_absolute_address_there_is_no_metadata_and_the_challenge_names_none() -> None:
    cases: list[str] = ["", "bot.example", "/plumbline", "ftp://bot.example", "https://", "https://a:b"]
    for public_url in cases:
        found = resource_at(public_url)
        assert found.metadata == {}, public_url
        assert found.challenge(wrong_token=True) == 'Bearer realm="plumbline", error="invalid_token"', public_url
