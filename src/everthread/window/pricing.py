"""Price a compaction before it is done."""

CACHED_PRICE = 0.10
"""Price of a cached input token, as a share of an uncached one; the usual discount of large providers."""


def pays(*, saved: int, reread: int, calls: int, cached_price: float = CACHED_PRICE) -> bool:
    """Tell whether making the prompt shorter costs less than keeping its head cached.

    A shorter prompt saves its tokens at the cached price in every later call; what follows the change
    is read once at the full price.

    Args:
        saved: tokens that leave the prompt.
        reread: tokens behind the change that are no longer cached.
        calls: calls until the next change, at the rate the thread grows.
        cached_price: price of a cached token, as a share of an uncached one.
    """
    return saved * cached_price * calls >= reread * (1 - cached_price)
