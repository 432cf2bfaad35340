"""What parts send to the driver while they train: an actor keeps it until the driver takes it.

Only plain data and arrays go through it, so that it needs NumPy alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Message(NamedTuple):
    """From a part."""

    part: int
    kind: str  # "begun" on a node, or "note"
    text: str


class Messages:
    """Keeps the newest progress of each part, and all messages in order."""

    def __init__(self) -> None:
        self._progress: dict[int, tuple[Any, ...]] = {}
        self._messages: list[Message] = []
        self._stopping = False

    def tell(self, part: int, kind: str, text: str) -> None:
        """Keep a message."""
        self._messages.append(Message(part, kind, text))

    def show(self, part: int, progress: tuple[Any, ...]) -> None:
        """Keep a part's progress in place of its last."""
        self._progress[part] = progress

    def stop(self) -> None:
        """Note that the driver stops all parts."""
        self._stopping = True

    def stopping(self) -> bool:
        """Whether the driver stops all parts, so that none is to be handed on."""
        return self._stopping

    def take(self) -> tuple[list[Message], dict[int, tuple[Any, ...]]]:
        """What has come since the last call."""
        taken = self._messages, self._progress
        self._messages, self._progress = [], {}
        return taken
