"""The search for a random code: the same by the native library, by matrix products, and by the definition."""

import pytest
import torch

from tests.references import coded as naive
from torch_multiclass import codes
from torch_multiclass.codes import search
from torch_multiclass.ops import _native, code_search


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=["library", "torch"])
def computed_by(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(_native, "library", lambda: None)
    elif _native.library() is None:
        pytest.skip(_native.backends()["native"])
    return request.param


@pytest.mark.parametrize("columns", [3, 63, 64, 65, 128, 150, 200])
@pytest.mark.parametrize("alphabet", [(-1, 1), (-1, 0, 0, 1)])
def test_codes_whose_rows_are_apart_are_found(columns, alphabet, computed_by):
    for k, transposed in ((2, False), (7, True), (150, False), (150, True)):
        entries = torch.tensor(alphabet, dtype=torch.int8)
        shape = (20, columns, k) if transposed else (20, k, columns)
        drawn = entries[torch.randint(len(entries), shape, generator=generator(columns))]
        drawn = drawn.mT if transposed else drawn
        distances = torch.tensor([codes.min_row_distance(code) for code in drawn])
        for least in (-1.0, *distances.unique().tolist()):
            expected = (distances > least).nonzero().flatten()
            assert torch.equal(code_search.apart(drawn, least), expected), (k, least)


def test_vectors_in_doubt():
    good = torch.tensor([[[1, -1, 0, 1], [1, 1, -1, 1], [0, 0, 1, -1]]], dtype=torch.int8)
    if _native.library() is None:
        assert not code_search.without_doubt(good)
        return
    assert code_search.without_doubt(good)
    for bad in ([-1, 1, 0, -1], [1, -1, 0, 1], [1, 0, 0, 1], [0, -1, 0, -1], [0, 0, 0, 0]):
        for place in range(3):
            vectors = good.clone()
            vectors[0, place] = torch.tensor(bad, dtype=torch.int8)
            twin = bad not in ([-1, 1, 0, -1], [1, -1, 0, 1]) or place != 0
            assert code_search.without_doubt(vectors) != twin, (bad, place)
    long = search.Draws(100, 50, torch.tensor([-1, 0, 0, 1], dtype=torch.int8), "admissible", generator())(5).mT
    assert code_search.without_doubt(long)
    for sign in (1, -1):
        twins = long.clone()
        twins[4, 49] = sign * twins[4, 3]
        assert not code_search.without_doubt(twins)


@pytest.mark.parametrize(("k", "columns", "trials"), [(4, 7, 50), (10, 34, 60), (26, 48, 30), (200, 70, 12)])
@pytest.mark.parametrize("zeros", [False, True])
def test_the_result_is_the_first_of_the_best_draws(k, columns, trials, zeros, computed_by):
    draw = codes.sparse_random if zeros else codes.dense_random
    found = draw(k, columns, trials=trials, generator=generator(5))
    alphabet = torch.tensor([-1, 0, 0, 1] if zeros else [-1, 1], dtype=torch.int8)
    draws = search.Draws(k, columns, alphabet, "admissible", generator(5))
    chunk = max(1, min(trials, 2**21 // (k * (k + columns))))
    best, most = None, -1.0
    for start in range(0, trials, chunk):
        for code in draws(min(chunk, trials - start)):
            distinct = len(set(map(tuple, code.tolist()))) == k and bool((code != 0).any(1).all())
            distance = naive.min_row_distance(code) if k < 50 else codes.min_row_distance(code)
            if distinct and distance > most:
                best, most = code, distance
    assert torch.equal(found, best)


def test_a_line_of_progress_is_shown_on_request(capsys):
    codes.dense_random(5, 8, trials=20, generator=generator(), progress=True)
    said = capsys.readouterr().err
    assert said.startswith("dense_random(5): 20 codes, smallest row distance ")
    assert said.count("\n") == 1
    codes.sparse_random(5, 8, trials=20, generator=generator())
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="progress: got 'yes'; accepted are True, False and None"):
        codes.dense_random(5, progress="yes")


def test_the_line_of_progress_is_written_over_twice_a_second(capsys, monkeypatch):
    """On a terminal from a second on, with the seconds since the start; the last line ends it."""
    clock = iter([100.0, 100.9, 101.2, 101.6, 101.8, 103.0])
    monkeypatch.setattr(search.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(search.sys.stderr, "isatty", lambda: True)
    line = search.Line(None)
    for count in range(4):
        line.show(f"{count} codes")
    line.close("done")
    said = [f"{text:79}{end}" for text, end in (("1 codes, 1 s", "\r"), ("3 codes, 2 s", "\r"), ("done, 3 s", "\n"))]
    assert capsys.readouterr().err == "".join(said)


def test_bad_draws_are_drawn_again_as_often_as_is_allowed():
    asked = []

    def draw(n):
        asked.append(n)
        return torch.arange(n)

    found = search.redraw(draw, lambda codes: codes % 3 > 0, 5, most=4)
    assert asked == [5, 3, 2, 1]  # each time those that are missing; of n numbers every third one is kept
    assert found.tolist() == [0, 3, 0, 0, 0]
    asked.clear()
    assert search.redraw(draw, lambda codes: codes < 0, 5, most=4).tolist() == [0, 1, 2, 3, 4]
    assert asked == [5]
    assert len(search.redraw(draw, lambda codes: codes >= 0, 5, most=3)) == 0
    assert asked == [5, 5, 5, 5]


@pytest.mark.parametrize(("name", "k", "columns"), [("dense_random", 3, 3), ("sparse_random", 3, 6)])
def test_a_code_drawn_by_its_name_has_no_more_columns_than_there_are(name, k, columns):
    assert codes.by_name(name, k, generator()).shape == (k, columns)
    assert codes.by_name(name, 10, generator()).shape == (10, 34 if name == "dense_random" else 50)
