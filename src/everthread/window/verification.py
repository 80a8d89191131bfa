"""The survival contract: what the user pinned is in the prompt, word for word."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage


def verify(prompt: Sequence[BaseMessage], pins: Sequence[str]) -> list[str]:
    """Return the pins that no message of the prompt has word for word, in their order."""
    if not pins:
        return []
    texts = [str(message.text) for message in prompt]
    return [pin for pin in pins if not any(pin in text for text in texts)]
