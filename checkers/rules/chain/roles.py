"""A broker starts, recovers, registers and reads the metadata in this order, and obeys each command once."""

from __future__ import annotations

from collections.abc import Iterator

from checkers.rules.chain.checkpoints import unused, used
from checkers.rules.chain.log import follows
from checkers.rules.chain.node import Given, Node
from harness.events import Elected, Fenced, Follower, Leader


def started(node: Node) -> Iterator[str]:
    """Yield it if a process started while one ran, and forget what only a process knows."""
    if not node.down:
        yield "started again, and nothing had taken it down"
    node.down = node.begun = node.registered = node.ready = node.owes = False
    node.role, node.epoch, node.leader, node.fresh, node.trims = "", -1, -1, None, None
    node.format = 0
    node.files.clear()
    if node.unsure:
        # A log of which nothing was flushed may be gone, and is then not reported.
        node.end, node.low, node.epochs, node.kept, node.held = None, 0, None, None, False
    elif not node.life:
        node.end = 0  # no run begins with a log
    node.silent = node.held
    node.life += 1


def led(node: Node, word: Leader, given: Given) -> Iterator[str]:
    """Yield what a report of leadership contradicts."""
    yield from follows(node, word.log_end_offset, "reported a log end of")
    yield from _obeyed(node, word, given)
    yield from used(node, word)
    if word.resumed and node.ready:
        yield f"resumed epoch {word.epoch}, which a process does only before it has read {given.noun},"
    certain = given.on_lead and node.writes_epochs(given)
    if certain and node.epochs is not None and (not node.epochs or node.epochs[-1][0] != word.epoch):
        newest = node.epochs[-1][0] if node.epochs else "none"
        yield f"led epoch {word.epoch} when the newest epoch of its checkpoint was {newest}"
    _takes(node, "leader", word)
    node.leader, node.owes = -1, False


def followed(node: Node, word: Follower, given: Given) -> Iterator[str]:
    """Yield what a report of a follower contradicts."""
    yield from follows(node, word.log_end_offset, "reported a log end of")
    yield from _obeyed(node, word, given)
    yield from unused(node, "follows")
    if word.kept and (node.role, node.leader) != ("follower", word.leader):
        yield f"went on to follow {word.leader}, which it had not followed,"
    if word.kept and not given.keeps:
        yield f"went on to follow {word.leader} without a cut, which its protocol does not do,"
    if not word.kept:
        node.owes, node.changed = True, False
    _takes(node, "follower", word)
    node.leader = word.leader


def _obeyed(node: Node, word: Leader | Follower, given: Given) -> Iterator[str]:
    if given.registers_first and not node.registered:
        yield "obeyed a command before it had registered"
    # `epochs` judges commands of older epochs, and a second role in one.
    role = "leader" if isinstance(word, Leader) else "follower"
    if (node.role, node.epoch) == (role, word.epoch):
        yield f"obeyed the command of epoch {word.epoch} twice"


def _takes(node: Node, role: str, word: Leader | Follower) -> None:
    node.role, node.epoch = role, word.epoch
    node.end, node.low, node.held = word.log_end_offset, min(node.low, word.log_end_offset), True


def fenced(node: Node, refused: Fenced) -> Iterator[str]:
    """Yield it if a broker was refused by a leader, or in an epoch, that it did not follow."""
    if (node.role, node.epoch, node.leader) != ("follower", refused.epoch, refused.leader):
        follows_ = f"followed {node.leader} in epoch {node.epoch}" if node.role == "follower" else "did not follow"
        yield f"was fenced by {refused.leader} in epoch {refused.epoch}, when it {follows_}"


def decided(node: Node, chosen: Elected) -> Iterator[str]:
    """
    Yield it if a controller reports a decision that its own replica has already obeyed.

    The metadata's answer may be so late that a successor's commands come before it, or those of a predecessor that
    does not know of the end of its office, and has read the decision in the metadata. A follower's log may have an
    epoch that it was not told of: before KIP-320 it is given what its leader appends in the next one.
    """
    if chosen.epoch < node.decided:
        yield f"elected epoch {chosen.epoch} after epoch {node.decided}"
    newest = node.epoch
    if newest < 0 and node.epochs:
        newest = node.epochs[-1][0]
    if newest >= chosen.epoch > node.decided and not node.rivalled:
        yield f"elected epoch {chosen.epoch} when it had obeyed a command of epoch {newest}"
    node.decided = max(node.decided, chosen.epoch)
