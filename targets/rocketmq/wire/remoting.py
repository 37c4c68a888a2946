"""One connection of the remoting protocol: what a frame asks, and which request an answer is to."""

from __future__ import annotations

from harness.target.length_prefix import PENDING_REQUESTS_MAX, LengthPrefixed, is_whole
from harness.target.wire import UNKNOWN, Direction, Link, Message, Seen
from targets.rocketmq.wire.frames import Unreadable, read, word_of


class Remoting(LengthPrefixed):
    """The frames of one connection; answers may come in another order than their requests."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._pending: dict[int, str] = {}

    def sent_again(self, correlation: int) -> None:
        """Do nothing: a request is forgotten when another takes its number, so that both answers find it."""

    def _request(self, frame: bytes) -> Message:
        return self._read(frame, Direction.REQUEST)

    def _answer(self, frame: bytes) -> Message:
        return self._read(frame, Direction.ANSWER)

    def _read(self, frame: bytes, direction: Direction) -> Message:
        try:
            found = read(frame)
        except Unreadable as error:
            return Message(seen=Seen(link=self._link, api=UNKNOWN, direction=direction), error=str(error))
        # Whoever was dialled may ask too; such a request has no word.
        if found.answers == (direction is Direction.REQUEST):
            return Message(seen=Seen(link=self._link, api=UNKNOWN, direction=direction))
        if not found.answers:
            self._remember(found.number, word_of(found.code))
        return Message(
            seen=Seen(
                link=self._link,
                api=self._pending.get(found.number, UNKNOWN),
                direction=direction,
                correlation=found.number if is_whole(frame) else -1,
            )
        )

    def _remember(self, number: int, word: str) -> None:
        self._pending.pop(number, None)
        if len(self._pending) >= PENDING_REQUESTS_MAX:
            del self._pending[next(iter(self._pending))]
        self._pending[number] = word
