"""BM25 and the fusion of rankings, as pure functions."""

import math

from hypothesis import given
from hypothesis import strategies as st

from everthread.storage.lexical.ranking import bm25, fuse, inverse_frequency


def test_a_rare_word_weighs_more_and_one_that_all_have_still_weighs() -> None:
    weights = [inverse_frequency(1000, holders) for holders in (1, 10, 500, 1000)]

    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0


def test_the_score_of_one_word_once_in_a_mean_item_is_its_weight() -> None:
    scores = bm25({"a": [1]}, {}, {"a": 2.0}, {1: 10}, 10.0)

    assert math.isclose(scores[1], 2.0)  # (k1 + 1) * 1 / (1 + k1) = 1


def test_shorter_items_and_repeated_words_score_higher() -> None:
    scores = bm25({"a": [1, 2, 3]}, {"a": {3}}, {"a": 1.0}, {1: 5, 2: 20, 3: 20}, 10.0)

    assert scores[1] > scores[2]
    assert scores[3] > scores[2]


def test_an_item_without_length_is_gone_and_gets_no_score() -> None:
    assert bm25({"a": [1, 2]}, {}, {"a": 1.0}, {2: 3}, 3.0).keys() == {2}


def test_fusion_prefers_what_both_rankings_name() -> None:
    fused = fuse([["a", "b", "c"], ["d", "c", "e"]])

    assert fused[0][0] == "c"
    assert math.isclose(fused[0][1], 1 / 63 + 1 / 62)


@given(st.lists(st.lists(st.integers(0, 20), unique=True), max_size=3))
def test_fusion_loses_nothing_and_sorts(rankings: list[list[int]]) -> None:
    fused = fuse(rankings)

    assert {key for key, _ in fused} == {key for ranking in rankings for key in ranking}
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)
