"""Decide whether a compaction is worth it before it is done, in tokens; `spend` counts money."""

CACHED_PRICE = 0.10
"""Price of a cached input token, as a share of an uncached one; the usual discount of large providers."""


def is_worth_now(*, headroom: int, growth: int, saved: int, reread: int, calls: int) -> bool:
    """Tell whether to compact now: the next turn might not fit any more, or the shorter prompt pays.

    Args:
        headroom: tokens that the messages may still grow by.
        growth: tokens of a turn.
        saved: as in `pays`, like the others.
        reread: tokens behind the change.
        calls: calls until the next change.
    """
    return headroom < growth or pays(saved=saved, reread=reread, calls=calls)


def calls_until_full(*, room: int, used: int, growth: int) -> int:
    """Return the calls until the messages fill their room: two a turn, which is what tool-using threads have."""
    return max(2 * (room - used) // growth, 1)


def pays(*, saved: int, reread: int, calls: int) -> bool:
    """Tell whether making the prompt shorter costs less than keeping its head cached.

    A shorter prompt saves its tokens at the cached price in every later call; what follows the change
    is read once at the full price.

    Args:
        saved: tokens that leave the prompt.
        reread: tokens behind the change that are no longer cached.
        calls: calls until the next change, at the rate the thread grows.
    """
    return saved * CACHED_PRICE * calls >= reread * (1 - CACHED_PRICE)
