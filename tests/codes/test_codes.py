import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.references import coded as naive
from torch_multiclass import codes
from torch_multiclass.codes import search
from torch_multiclass.codes.words import word_keys


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def columns_up_to_sign(code):
    return {max(tuple(c), tuple(-x for x in c)) for c in code.T.tolist()}


def random_ternary(k, columns, seed):
    return torch.randint(-1, 2, (k, columns), generator=generator(seed), dtype=torch.int8)


# ------------------------------------------------------------------------------------------- constructions


@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_constructions_entry_by_entry(k):
    one = codes.one_vs_all(k)
    assert all(one[r, s] == (1 if r == s else -1) for r in range(k) for s in range(k))
    pairs = list(itertools.combinations(range(k), 2))
    one = codes.one_vs_one(k)
    assert one.shape == (k, len(pairs))
    for s, (i, j) in enumerate(pairs):
        assert {r: int(one[r, s]) for r in range(k) if one[r, s]} == {i: 1, j: -1}
    splits = {max(c, tuple(-x for x in c)) for c in itertools.product([-1, 1], repeat=k) if len(set(c)) == 2}
    assert codes.complete(k).shape == (k, 2 ** (k - 1) - 1)
    assert columns_up_to_sign(codes.complete(k)) == splits
    assert codes.minimal(k).shape == (k, math.ceil(math.log2(k)))
    assert len(set(map(tuple, codes.minimal(k).tolist()))) == k


@pytest.mark.parametrize("k", [2, 3, 4, 7, 8, 20])
def test_hadamard_rows_differ_in_half_of_the_order(k):
    code = codes.hadamard(k)
    order = code.shape[1] + 1
    assert order == 2 ** math.ceil(math.log2(k))
    assert all(naive.row_distance(u, v) == order / 2 for u, v in itertools.combinations(code.tolist(), 2))
    assert len(columns_up_to_sign(code)) == order - 1
    assert bool(((code > 0).any(0) & (code < 0).any(0)).all())


@pytest.mark.parametrize("k", [4, 5, 8, 12])
@pytest.mark.parametrize("name", ["one_vs_all", "one_vs_one", "complete", "minimal", "hadamard"])
def test_constructions_are_known_by_their_entries(name, k):
    code = codes.by_name(name, k)
    assert codes.name_of(code) == name
    assert codes.name_of(code[:, 1:]) is None
    assert codes.name_of(-code) is None


@pytest.mark.parametrize("k", [2, 3, 6, 10])
def test_known_row_distances(k):
    assert codes.min_row_distance(codes.one_vs_all(k)) == 2
    assert codes.min_row_distance(codes.one_vs_one(k)) == (k * (k - 1) / 2 - 1) / 2 + 1
    assert codes.min_row_distance(codes.complete(k)) == 2 ** (k - 2)


def test_expected_row_distance_of_a_random_code_is_half_its_columns():
    """Mean over 4,000 pairs; one pair deviates by sqrt(40)/2 at most, so 0.2 is four standard errors."""
    for rule_code in (codes.dense_random, codes.sparse_random):
        sampled = [
            codes.row_distances(rule_code(9, 40, trials=1, generator=generator(seed), rule="paper"))[0, 1]
            for seed in range(400)
        ]
        assert abs(float(torch.stack(sampled).mean()) - 20) < 4 * math.sqrt(40) / 2 / math.sqrt(400)


@given(k=st.integers(2, 6), columns=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_row_distances_against_the_definition(k, columns, seed):
    code = random_ternary(k, columns, seed)
    expected = [[naive.row_distance(u, v) for v in code.tolist()] for u in code.tolist()]
    assert codes.row_distances(code).tolist() == expected
    assert codes.min_row_distance(code) == naive.min_row_distance(code)


# ---------------------------------------------------------------------------------------------- correction


@pytest.mark.parametrize("code", [codes.complete(5), codes.hadamard(8), codes.one_vs_all(5), codes.minimal(5)])
def test_signed_codes_correct_half_the_distance(code):
    expected = (codes.min_row_distance(code) - 1) // 2
    assert int(codes.correctable(code).min()) == expected


@given(k=st.integers(2, 5), columns=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_every_promised_number_of_wrong_columns_is_corrected(k, columns, seed):
    """All answers with that many wrong columns, whatever the ignored columns say, decode to the true row; and the
    promise covers any e < (rho - q)/2."""
    code = random_ternary(k, columns, seed)
    distance = codes.min_row_distance(code)
    for label, promised in enumerate(codes.correctable(code).tolist()):
        row = code[label].tolist()
        zeros = row.count(0)
        assert promised >= math.ceil((distance - zeros) / 2) - 1
        for answers in itertools.product([-1, 1], repeat=columns):
            wrong = sum(a == -b for a, b in zip(answers, row, strict=True) if b)
            if wrong <= promised:
                d = [naive.row_distance(answers, other) for other in code.tolist()]
                assert d[label] < min(d[:label] + d[label + 1 :])


@given(k=st.integers(2, 5), columns=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_one_wrong_column_more_than_promised_is_not_corrected(k, columns, seed):
    """The count is the largest there is, zeros in either row included: beyond it, some answers fail."""
    code = random_ternary(k, columns, seed)
    for label, promised in enumerate(codes.correctable(code).tolist()):
        row, survived = code[label].tolist(), columns
        for answers in itertools.product([-1, 1], repeat=columns):
            wrong = sum(a == -b for a, b in zip(answers, row, strict=True) if b)
            d = [naive.row_distance(answers, other) for other in code.tolist()]
            if d[label] >= min(d[:label] + d[label + 1 :]):
                survived = min(survived, wrong - 1)
        assert promised == survived, label


def test_an_error_costs_one_where_the_other_row_has_a_zero():
    code = [[0, 0, 0, 0, -1], [-1, 0, -1, -1, 1], [-1, 1, -1, 1, -1]]
    assert codes.correctable(code).tolist() == [-1, 0, 1]
    assert codes.correctable([[1, 1, 1, 1, 1, 1], [-1, 0, 0, 0, 0, 0]]).tolist() == [2, -1]


# -------------------------------------------------------------------------------------------- random codes


def assert_admissible(code, zeros):
    assert len(columns_up_to_sign(code)) == code.shape[1]
    assert bool(((code > 0).any(0) & (code < 0).any(0)).all())
    assert len(set(map(tuple, code.tolist()))) == len(code)
    assert bool((code != 0).any(1).all())
    assert set(code.unique().tolist()) <= ({-1, 0, 1} if zeros else {-1, 1})


@pytest.mark.parametrize(("k", "columns"), [(3, 2), (4, 3), (5, 15), (6, 10), (10, 4), (12, None), (26, 5), (45, 60)])
@pytest.mark.parametrize("zeros", [False, True])
def test_draws_are_admissible(k, columns, zeros):
    draw = codes.sparse_random if zeros else codes.dense_random
    for seed in range(3):
        code = draw(k, columns, trials=20, generator=generator(seed))
        factor = 15 if zeros else 10
        assert code.shape == (k, math.ceil(factor * math.log2(k)) if columns is None else columns)
        assert_admissible(code, zeros)


@pytest.mark.parametrize("columns", [2, 3, 5, 6])
def test_every_code_with_distinct_rows_is_as_likely(columns):
    """K = 4, where rows or columns are drawn, from a list or not, as suits their number."""
    draws = search.Draws(4, columns, torch.tensor([-1, 1], dtype=torch.int8), "admissible", generator())
    splits = sorted(columns_up_to_sign(codes.complete(4)))
    codes_there_are = [
        frozenset(chosen)
        for chosen in itertools.combinations(splits, columns)
        if len(set(zip(*chosen, strict=True))) == 4
    ]
    counts = dict.fromkeys(codes_there_are, 0)
    for code in draws(3000):
        if len(set(map(tuple, code.tolist()))) == 4:
            counts[frozenset(columns_up_to_sign(code))] += 1
    expected = sum(counts.values()) / len(counts)
    assert expected > 100
    assert all(abs(count - expected) < 5 * math.sqrt(expected) for count in counts.values())


def test_both_ways_of_sampling_ternary_columns_follow_one_law():
    """K = 3, two of 6 columns up to sign: how often each column occurs, by redrawing and from the list."""
    draws = search.Draws(3, 2, torch.tensor([-1, 0, 0, 1], dtype=torch.int8), "admissible", generator())
    ways = [way(40_000, 2, 3, search.both_signs, fold=True) for way in (draws._distinct, draws._listed)]
    keys = [word_keys(way).abs() for way in ways]
    share = [torch.stack([(key == value).float().mean() for value in keys[0].unique()]) for key in keys]
    assert len(share[0]) == 6
    assert bool(((share[0] - share[1]).abs() < 0.01).all())  # 80,000 columns: a standard error of 0.0018 at most


def test_the_search_keeps_the_best_draw():
    few = codes.min_row_distance(codes.dense_random(10, trials=10, generator=generator()))
    many = codes.min_row_distance(codes.dense_random(10, trials=10_000, generator=generator()))
    assert few < many
    assert many >= 13


def test_a_large_search_is_good():
    code = codes.dense_random(26, 48, generator=generator())
    assert naive.min_row_distance(code) >= 17


def test_the_generator_decides_and_the_global_one_is_left_alone():
    state = torch.get_rng_state()
    a, b = (codes.dense_random(8, trials=50, generator=generator(3)) for _ in range(2))
    assert torch.equal(a, b)
    assert torch.equal(state, torch.get_rng_state())
    assert not torch.equal(a, codes.dense_random(8, trials=50, generator=generator(4)))


def test_paper_rule():
    dense = codes.dense_random(8, trials=200, generator=generator(), rule="paper")
    assert dense.shape == (8, 30)
    assert len(set(map(tuple, dense.T.tolist()))) == 30
    sparse = codes.sparse_random(4, trials=200, generator=generator(), rule="paper")
    assert sparse.shape == (4, 30)  # not capped by the 25 that differ
    assert bool((sparse != 0).any(0).all())
    assert bool((sparse != 0).any(1).all())
    with pytest.raises(ValueError, match=r"columns: got 9; accepted by the paper's rule are at most 8"):
        codes.dense_random(3, 9, rule="paper")


def test_four_classes():
    assert_admissible(codes.dense_random(4, 2, generator=generator()), zeros=False)
    with pytest.raises(ValueError, match=r"columns: got 1; accepted are at least 2 to tell 4 classes apart"):
        codes.dense_random(4, 1)
    with pytest.warns(UserWarning, match="20 asked for, but 4 classes have 7") as caught:
        code = codes.dense_random(4, generator=generator())
    assert len(caught) == 1
    assert code.shape == (4, 7)
    assert columns_up_to_sign(code) == columns_up_to_sign(codes.complete(4))
    assert codes.dense_random(4, 7, generator=generator()).shape == (4, 7)  # all there are, and no warning
    with pytest.warns(UserWarning, match="30 asked for, but 4 classes have 25"):
        assert codes.sparse_random(4, generator=generator()).shape == (4, 25)


# -------------------------------------------------------------------------------------------------- checks


def test_bad_codes_are_errors():
    with pytest.raises(ValueError, match=r"code: rows 0 and 2 are equal"):
        codes.check([[1, -1], [-1, 1], [1, -1]])
    with pytest.raises(ValueError, match=r"code: column 1 is all zero"):
        codes.check([[1, 0], [-1, 0]])
    with pytest.raises(ValueError, match=r"1 column\(s\) tell at most 2 classes apart; accepted are at least 2"):
        codes.check([[1], [-1], [1]])
    with pytest.raises(ValueError, match=r"code: holds the entry 2; accepted are -1, 0 and \+1"):
        codes.check([[1, 2], [-1, 1]])
    with pytest.raises(ValueError, match=r"code: holds the entry 0.5"):
        codes.check(torch.tensor([[0.5, 1.0], [-1.0, 1.0]]))
    for shape in [(3,), (1, 3), (2, 0)]:
        with pytest.raises(ValueError, match=r"code: got shape"):
            codes.check(torch.ones(shape))


def test_odd_codes_are_one_warning():
    with pytest.warns(UserWarning, match="code: ") as caught:
        assert codes.check(naive.FIGURE_2).tolist() == naive.FIGURE_2
    assert len(caught) == 1
    code = [[1, 1, 1, 0], [1, -1, -1, 0], [1, 1, -1, 1], [0, 0, 0, 0]]
    with pytest.warns(UserWarning, match="code: ") as caught:
        codes.check(code)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "column(s) 0, 3 have a single sign" in message
    assert "class(es) 3 are ignored" in message
    assert "2 * code - 1" not in message
    with pytest.warns(UserWarning, match="^code: no entry is -1") as caught:
        codes.check([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert str(caught[0].message).endswith("so nothing is learned; 2 * code - 1 may be meant")  # and no more
    with pytest.warns(UserWarning, match="columns 0 and 1 are equal or opposite"):
        codes.check([[1, -1, 1], [-1, 1, 1], [-1, 1, -1]])
    with pytest.warns(UserWarning, match="columns 0 and 2 are equal or opposite"):
        codes.check([[1, 1, 1], [0, -1, 0], [-1, 1, -1]])
    with pytest.warns(UserWarning, match="no column sets classes 0 and 2 against each other"):
        codes.check([[1, 0], [-1, 1], [0, -1]])


@pytest.mark.parametrize(("count", "listed"), [(1, "0"), (5, "0, 1, 2, 3, 4"), (6, "0, 1, 2, 3, 4 …")])
def test_of_many_columns_five_are_listed(count, listed):
    one_sided = torch.tensor(list(itertools.product([0, 1], repeat=4)), dtype=torch.int8)[1 : count + 1].T
    with pytest.warns(UserWarning, match="code: ") as caught:
        codes.check(torch.cat([one_sided, codes.complete(4)], 1))
    assert f"column(s) {listed} have a single sign" in str(caught[0].message)


def test_ordinary_codes_raise_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (2, 3, 6):
            for make in (codes.one_vs_all, codes.one_vs_one, codes.complete, codes.minimal, codes.hadamard):
                assert codes.check(make(k)).dtype == torch.int8
        assert codes.check(np.array(naive.FIGURE_9_5)).tolist() == naive.FIGURE_9_5


def test_bad_arguments_are_named():
    for make in (codes.one_vs_all, codes.one_vs_one, codes.complete, codes.minimal, codes.hadamard, codes.dense_random):
        with pytest.raises(ValueError, match=r"k: got 1; accepted is a whole number >= 2"):
            make(1)
    with pytest.raises(ValueError, match=r"k: got 17 classes.*at most 16"):
        codes.complete(17)
    with pytest.raises(ValueError, match=r"rule: got 'best'"):
        codes.dense_random(4, rule="best")
    with pytest.raises(ValueError, match=r"trials: got 0"):
        codes.sparse_random(4, trials=0)
