"""What reports of the provider teach: an anchor, a slope, and that a refused prompt was too long."""

import json

from hypothesis import assume, given
from hypothesis import strategies as st

from everthread.window.calibration import KEPT, SLOPES, Anchor, Calibration

COUNTS = st.integers(min_value=1, max_value=2_000_000)
REPORTS = st.lists(st.tuples(COUNTS, COUNTS), max_size=12)


def taught(reports: list[tuple[int, int]], *, exact: bool = False) -> Calibration:
    calibration = Calibration(exact=exact)
    for counted, reported in reports:
        calibration = calibration.observe(counted, reported)
    return calibration


@given(REPORTS, COUNTS, st.booleans())
def test_the_inverse_is_the_largest_count_that_fits(reports: list[tuple[int, int]], limit: int, exact: bool) -> None:
    calibration = taught(reports, exact=exact)

    largest = calibration.inverse(limit)

    assert largest == 0 or calibration.apply(largest) <= limit
    assert calibration.apply(largest + 1) > limit


def test_counts_stand_before_any_report() -> None:
    assert Calibration().apply(1234) == 1234


def test_accuracy_turns_to_anchored_with_the_first_report() -> None:
    assert [Calibration().accuracy, Calibration(exact=True).accuracy] == ["estimated", "exact"]
    assert [taught([(10, 12)]).accuracy, taught([(10, 12)], exact=True).accuracy] == ["anchored", "anchored"]


def test_exact_counts_learn_the_offset_and_keep_slope_one() -> None:
    calibration = taught([(1000, 1400), (2000, 3000)], exact=True)

    assert calibration.slope == 1.0
    assert calibration.apply(2100) == 3100


def test_one_report_gives_the_ratio_as_slope() -> None:
    assert taught([(1000, 1200)]).apply(2000) == 2400


def test_one_report_with_a_large_overhead_leaves_it_in_the_offset() -> None:
    assert taught([(100, 2000)]).apply(200) == 2150  # slope held at 1.5; the rest does not grow


def test_slope_and_offset_are_learned_from_several_reports() -> None:
    calibration = taught([(n, 500 + round(1.25 * n)) for n in (1000, 2000, 3000)])

    assert calibration.slope == 1.25
    assert calibration.apply(10_000) == 13_000


def test_one_odd_report_does_not_move_the_slope() -> None:
    reports = [(n, 2 * n) for n in (1000, 2000, 3000, 4000, 5000)]

    assert taught([*reports[:2], (2500, 9000), *reports[2:]]).slope == 2.0


def test_reports_no_tokeniser_could_give_are_left_out() -> None:
    calibration = taught([(1000, 1200)])

    assert calibration.observe(50_000, 300) == calibration
    assert calibration.observe(0, 300) == calibration
    assert calibration.observe(1000, 0) == calibration


def test_only_the_last_reports_are_kept() -> None:
    calibration = taught([(n, n) for n in range(1, 2 * KEPT)])

    assert [anchor.counted for anchor in calibration.anchors] == list(range(KEPT, 2 * KEPT))


def test_nothing_kept_makes_a_new_calibration() -> None:
    assert Calibration.from_json(None) == Calibration()


@given(REPORTS, st.booleans())
def test_calibration_survives_json(reports: list[tuple[int, int]], exact: bool) -> None:
    calibration = taught(reports, exact=exact)

    assert Calibration.from_json(json.loads(json.dumps(calibration.to_json()))) == calibration


@given(REPORTS, st.booleans())
def test_slope_stays_within_its_limits(reports: list[tuple[int, int]], exact: bool) -> None:
    assert SLOPES[0] <= taught(reports, exact=exact).slope <= SLOPES[1]


@given(REPORTS, COUNTS, COUNTS)
def test_more_counted_is_never_less_applied(reports: list[tuple[int, int]], one: int, other: int) -> None:
    calibration = taught(reports)

    assert calibration.apply(min(one, other)) <= calibration.apply(max(one, other))


@given(REPORTS, COUNTS)
def test_applied_counts_are_never_below_half(reports: list[tuple[int, int]], counted: int) -> None:
    assert taught(reports).apply(counted) >= round(counted * SLOPES[0])


@given(REPORTS, COUNTS, st.booleans())
def test_the_last_believable_report_is_reproduced(reports: list[tuple[int, int]], counted: int, exact: bool) -> None:
    reported = counted + counted // 3

    assert taught([*reports, (counted, reported)], exact=exact).apply(counted) == reported


@given(REPORTS, COUNTS, COUNTS, st.booleans())
def test_a_refused_prompt_counts_above_the_limit(
    reports: list[tuple[int, int]], counted: int, limit: int, exact: bool
) -> None:
    assume(limit < counted * SLOPES[1])  # no tokeniser makes more of a prompt; such a refusal is a fault

    assert taught(reports, exact=exact).observe_overflow(counted, limit).apply(counted) > limit


def test_a_refusal_that_was_foreseen_teaches_nothing() -> None:
    calibration = taught([(1000, 1500)])

    assert calibration.observe_overflow(1000, 1400) == calibration


@given(st.integers(10, 100_000), st.integers(-2, 50), st.integers(10, 100_000), st.integers(0, 200_000))
def test_an_exact_count_learns_nothing_from_the_offset_it_knows(
    first: int, offset: int, second: int, asked: int
) -> None:
    known = Calibration(exact=True).observe(first, first + offset)

    again = known.observe(second, second + offset)

    assert again is known
    told = Calibration(True, (Anchor(second, second + offset),))
    assert (again.apply(asked), again.inverse(asked)) == (told.apply(asked), told.inverse(asked))
