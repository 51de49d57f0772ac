"""The objects that a server needs once for signing in by a provider."""

from __future__ import annotations

from executor.blocks.http.client import GuardedClient
from server.oidc.flow import Flow
from server.oidc.provider import Provider
from server.oidc.settings import OidcSettings


class SignIn:
    """The parts of signing in by a provider. `allow_private` is what the operator allows besides the provider
    itself."""

    def __init__(
        self, settings: OidcSettings, secret: bytes, base_url: str, allow_private: tuple[str, ...] = ()
    ) -> None:
        self.settings = settings
        self._client = GuardedClient([*allow_private, *([settings.place] if settings.private else ())])
        self.provider = Provider(settings, self._client)
        self.flow = Flow(settings, secret, base_url)

    async def close(self) -> None:
        await self._client.close()
