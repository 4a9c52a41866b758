"""Rows and words that are handed over as arrays, to be labelled by a model that was kept."""

import numpy as np
import pytest
import torch
from scipy import sparse

from recipes.data.letters import Words
from recipes.data.new import features_of
from tests.recipes.resuming import handwriting

TABLE = {"shape": [2], "columns": ["x", "y"], "categories": {}, "classes": ["a", "b"]}
IMAGES = {"shape": [1, 2, 2], "columns": None, "categories": {}, "classes": ["a", "b"]}


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]], np.uint8),
        np.array([["1", "2"], ["3", "4"]]),
        torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
        torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float16),
        sparse.csr_matrix([[1, 2], [3, 4]]),
    ],
    ids=["list", "bytes", "words", "with a gradient", "half", "sparse"],
)
def test_rows_of_every_kind(rows):
    assert features_of(rows, TABLE).tolist() == [[1, 2], [3, 4]]


def test_missing_values_and_no_rows():
    assert np.isnan(features_of([[None, 1.0], [np.nan, 2]], TABLE)[:, 0]).all()
    assert features_of(np.zeros((0, 2)), TABLE).shape == (0, 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(2), r"got shape \(2,\); accepted is \(rows, 2\), as in training"),
        (np.zeros((3, 4)), "got 4 columns; accepted are 2, as in training: x, y"),
        (np.zeros((3, 2, 1)), r"got shape \(3, 2, 1\); accepted is \(rows, 2\)"),
        ([], r"got shape \(0,\); accepted is \(rows, 2\)"),
        (None, r"got shape \(\); accepted is \(rows, 2\)"),
        ({}, r"got shape \(\); accepted is \(rows, 2\)"),
        ([[1, 2], [3]], r"got a list that is no array .*; accepted is \(rows, 2\)"),
        (np.zeros((2, 2), complex), r"got dtype complex128; accepted are real numbers, \(rows, 2\)"),
        (np.zeros((2, 2), "M8[s]"), "got dtype datetime64"),
        ([[1, np.inf]], r"is infinite at \(0, 1\); accepted are finite numbers, and NaN where"),
        ([["1", "inf"]], "column y of the array has 'inf' in row 1"),
        ([["a", "b"]], "column x of the array has 'a' in row 1; accepted are finite numbers"),
    ],
)
def test_no_rows_of_the_model_are_one_line(rows, message):
    with pytest.raises(ValueError, match=f"rows: {message}"):
        features_of(rows, TABLE)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((3, 1, 2, 3)), r"got rows of shape \(1, 2, 3\); accepted is \(1, 2, 2\), as in training"),
        (np.full((1, 1, 2, 2), "a"), "could not convert string to float: .*; accepted are numbers"),
    ],
)
def test_no_images_of_the_model_are_one_line(rows, message):
    with pytest.raises(ValueError, match=f"rows: {message}"):
        features_of(rows, IMAGES)


@pytest.fixture
def words(tmp_path):
    """Those of a file, and the pictures of each."""
    held = handwriting()
    np.savez(tmp_path / "letters.npz", **held)
    bits = np.unpackbits(held["images_packed"], axis=1)[:, :12].reshape(-1, 4, 3)
    return Words.read(str(tmp_path / "letters.npz")), [bits[held["word_id"] == i] for i in range(60)]


@pytest.mark.parametrize(
    "kind",
    [np.array, lambda one: one.reshape(-1, 12) * 7.5, lambda one: torch.tensor(one) != 0, lambda one: one.tolist()],
)
def test_words_that_are_arrays_are_those_of_a_file(words, kind):
    expected, pictures = words
    found = Words.of([kind(one) for one in pictures], (4, 3), expected.alphabet)
    every = torch.arange(60)
    assert torch.equal(found.batch(every).features, expected.batch(every).features)
    assert torch.equal(found.batch(every).lengths, expected.batch(every).lengths)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("letters", r"words: got str; accepted is a list of arrays \(letters, 4, 3\), one a word"),
        (3, "words: got int; accepted is a list"),
        ([], "words: got list; accepted is a list"),
        (
            [np.ones((2, 4, 3)), np.ones((2, 3, 4))],
            r"words: entry 1 has shape \(2, 3, 4\); accepted is \(letters, 4, 3\)",
        ),
        ([np.ones((0, 4, 3))], r"words: entry 0 has shape \(0, 4, 3\)"),
        ([3], r"words: entry 0 has shape \(\)"),
        (np.ones((2, 4, 3)), r"words: entry 0 has shape \(4, 3\)"),
        ([np.full((1, 4, 3), np.nan)], "words: entry 0 is not finite"),
        ([np.full((1, 4, 3), "a")], "words: entry 0 has dtype <U1; accepted are numbers"),
        ([np.full((1, 4, 3), 1j)], "words: entry 0: got dtype complex128"),
        ([np.ones((1, 4, 3)), np.zeros((1, 4, 3))], "words: letter 0 of entry 1 has no ink"),
        ([[[1], [1, 2]]], "words: entry 0: got a list that is no array"),
    ],
)
def test_no_words_are_one_line(given, message):
    with pytest.raises(ValueError, match=message):
        Words.of(given, (4, 3), "abcd")
