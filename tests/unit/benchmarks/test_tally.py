"""Counts and shares."""

from dataclasses import dataclass

from benchmarks.suites.tally import Tally
from everthread.evals.suites import share


@dataclass
class Fruit(Tally):
    apples: int = 0
    pears: int = 0


def test_tallies_add_up_name_by_name() -> None:
    basket = Fruit(apples=1)

    basket.add(Fruit(apples=2, pears=3))

    assert basket == Fruit(apples=3, pears=3)


def test_a_share_of_nothing_is_what_one_asks_for() -> None:
    assert (share(1, 4), share(0, 0), share(0, 0, empty=1.0)) == (0.25, 0, 1)
