"""BM25 and the fusion of rankings, as pure functions."""

import math

from hypothesis import given
from hypothesis import strategies as st

from everthread.storage.ranking import K1, OFTEN_COUNTS, B, bm25, inverse_frequency


def test_a_rare_word_weighs_more_and_one_that_all_have_still_weighs() -> None:
    weights = [inverse_frequency(1000, holders) for holders in (1, 10, 500, 1000)]

    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0


def test_the_score_of_one_word_once_in_a_mean_item_is_its_weight() -> None:
    scores = bm25({"a": {1}}, {}, {"a": 2.0}, {1: 10}, 10.0)

    assert math.isclose(scores[1], 2.0)  # (k1 + 1) * 1 / (1 + k1) = 1


def test_shorter_items_and_repeated_words_score_higher() -> None:
    scores = bm25({"a": {1, 2, 3}}, {"a": {3}}, {"a": 1.0}, {1: 5, 2: 20, 3: 20}, 10.0)

    assert scores[1] > scores[2]
    assert scores[3] > scores[2]


def test_an_item_without_length_is_gone_and_gets_no_score() -> None:
    assert bm25({"a": {1, 2}}, {}, {"a": 1.0}, {2: 3}, 3.0).keys() == {2}


@given(st.dictionaries(st.sampled_from("abcd"), st.tuples(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))))
def test_a_score_is_the_sum_over_the_words_of_an_item(held: dict[str, tuple[set[int], set[int]]]) -> None:
    hits = {word: items | often for word, (items, often) in held.items()}
    often = {word: repeated for word, (_, repeated) in held.items()}
    weights = {word: 0.3 * place + 0.1 for place, word in enumerate(hits)}
    lengths = {item: 3 + item for item in range(8)}

    scores = bm25(hits, often, weights, lengths, 6.0)

    for item, score in scores.items():
        norm = K1 * (1 - B + B * lengths[item] / 6.0)
        counts = {word: OFTEN_COUNTS if item in often[word] else 1.0 for word in hits if item in hits[word]}
        wanted = sum(weights[word] * (K1 + 1) * count / (count + norm) for word, count in counts.items())
        assert math.isclose(score, wanted, abs_tol=1e-9)
    assert scores.keys() == lengths.keys()
