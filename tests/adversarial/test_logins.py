"""Attacks on logins to MCP servers: by metadata that lead a login to somebody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("keyring")

from tests.adversarial.attack import Attack, attacks
from tests.file_keyring import use_file
from tests.mcp.authorization import AuthorizationServer, answered, authorization_server
from tests.mcp.test_login import a_login, always, as_resource
from tui_agent.tools.mcp.status import LoginError

METADATA = "/.well-known/oauth-authorization-server"
BANK = {"resource": "https://bank.example/", "authorization_servers": ["https://x.example"]}


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AuthorizationServer]:
    use_file(monkeypatch, tmp_path / "keyring.json")
    with authorization_server() as made:
        yield made


@attacks(
    *(
        Attack(
            name,
            tried,
            "The login ends before a browser is opened or a token asked for; who misleads is named",
            value=value,
        )
        for name, tried, *value in (
            (
                "another_issuer",
                "Metadata of an authorization server that name another issuer",
                {"issuer": "http://127.0.0.1:1/other"},
                {},
                "are those of the issuer",
            ),
            (
                "another_resource",
                "A server whose metadata are those of a bank",
                {},
                {"/about": always(answered(BANK))},
                "another server",
            ),
            (
                "open_token_endpoint",
                "A token endpoint that everybody on the way can read",
                {"token_endpoint": "http://example.org/token"},
                {},
                "not protected by https",
            ),
            (
                "endless_redirects",
                "Metadata that lead to themselves without end",
                {},
                {METADATA: always((302, {"Location": METADATA}, b""))},
                "says nowhere how to log in",
            ),
            (
                "unprotected_code",
                "An authorization server that does not bind a code to who asked for it",
                {"code_challenge_methods_supported": ["plain"]},
                {},
                "does not say that it protects codes",
            ),
        )
    )
)
async def test_logins_that_are_led_elsewhere(
    tmp_path: Path, issuer: AuthorizationServer, row: Attack
) -> None:
    changed: dict[str, Any]
    changed, instead, says = row.value
    as_resource(issuer)
    issuer.changed.update(changed)
    issuer.instead.update(instead)
    async with a_login(tmp_path, issuer.resource) as begun:
        with pytest.raises(LoginError, match=says):
            await begun.begin()
    assert issuer.times("/token") == 0
