"""The real OpenAI chat model against the test server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from server import OpenAIServer


@contextmanager
def chats(server: OpenAIServer, **defaults: Any) -> Iterator[Callable[..., ChatOpenAI]]:
    """Give a maker of chat models that talk to `server`; it tries once unless a test says otherwise."""
    # `verify=False` saves the 50 ms that loading certificates takes; nothing here is encrypted. The asynchronous client
    # needs no closing: the server ends every connection itself.
    client, aclient = openai.DefaultHttpxClient(verify=False), openai.DefaultAsyncHttpxClient(verify=False)
    given: dict[str, Any] = {
        "model": server.models[0],
        "base_url": server.base_url,
        "api_key": SecretStr(server.key or "none"),
        "http_client": client,
        "http_async_client": aclient,
        "max_retries": 0,
        "stream_usage": True,
        **defaults,
    }
    yield lambda **settings: ChatOpenAI(**(given | settings))
    client.close()
