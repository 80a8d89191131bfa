"""Signed in, in a browser: a cookie that holds the key or token encrypted, and tokens for forms.

Nothing is kept for a session. The secret is in the database, so any worker reads the cookie of any other, and what is
in it is checked again with each request: a key that is withdrawn, or a token that expires, ends the session.
"""

import hashlib
import hmac
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken
from langgraph.store.base import BaseStore
from starlette.requests import Request
from starlette.responses import Response

COOKIE = "everthread_session"
_SPACE = ("dashboard",)
_SECONDS = 12 * 3600
_LONGEST = 3_000
"""Characters of a key or token; browsers keep no cookie over 4,096 bytes."""


class Sessions:
    """Writes and reads the cookies of all workers on one database."""

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    async def headers(self, request: Request) -> Mapping[str, str]:
        """Return the headers that say who calls: with the key or token of the cookie, where there is one."""
        cookie = request.cookies.get(COOKIE)
        if not cookie or "authorization" in request.headers:
            return request.headers
        try:
            credential = Fernet(await self._secret()).decrypt(cookie.encode(), ttl=_SECONDS).decode()
        except (InvalidToken, ValueError):
            return {}
        return {"authorization": f"Bearer {credential}"}

    async def begin(self, request: Request, response: Response, credential: str, path: str) -> None:
        """Set the cookie of a path; other sites cannot make a browser send it, and no script can read it."""
        response.set_cookie(
            COOKIE,
            Fernet(await self._secret()).encrypt(credential.encode()).decode(),
            max_age=_SECONDS,
            path=path,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def end(self, response: Response, path: str) -> None:
        """Remove the cookie of a path."""
        response.delete_cookie(COOKIE, path=path, httponly=True, samesite="strict")

    @staticmethod
    def can_hold(credential: str) -> bool:
        """Tell whether a text can be a key or token in a cookie."""
        return 0 < len(credential) <= _LONGEST and credential.isascii() and credential.isprintable()

    async def form_token(self, credential: str) -> str:
        """Return what every form of a caller carries: a page of another site cannot know it."""
        return hmac.new(await self._secret(), credential.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    async def _secret(self) -> bytes:
        item = await self._store.aget(_SPACE, "secret")
        if item is None:
            await self._store.aput(_SPACE, "secret", {"key": Fernet.generate_key().decode()}, index=False)
            # Two workers may have made one: what was written last counts.
            item = await self._store.aget(_SPACE, "secret")
            assert item is not None
        return str(item.value["key"]).encode()
