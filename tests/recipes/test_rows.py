"""Data sets of the recipes: splits, encoding, and what they say about bad files."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("lightning")
pytest.importorskip("sklearn")

from recipes.data.digits import Digits
from recipes.data.encoding import Encoder, stratified_split
from recipes.data.npz import Npz
from recipes.data.rows import IGNORED


def table(path, **arrays):
    """A small file: 60 rows of 3 well separated classes, changed as told."""
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    features = np.eye(3)[labels] + 0.1 * generator.standard_normal((60, 3))
    arrays = {"X": features, "y": labels} | arrays
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return str(path)


def test_digits_are_split_as_scikit_learn_splits_them():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    labels = load_digits().target
    train, test = train_test_split(np.arange(len(labels)), test_size=0.25, stratify=labels, random_state=0)
    data = Digits()
    assert data.parts["test"].labels.tolist() == labels[test].tolist()
    assert len(data.parts["train"]) + len(data.parts["validation"]) == len(train)
    assert data.input_shape == (1, 8, 8)
    assert data.classes == [str(digit) for digit in range(10)]
    train_pixels = data.parts["train"].features
    assert abs(float(train_pixels.mean())) < 1e-5
    assert abs(float(train_pixels.std()) - 1) < 1e-3


def test_split_has_the_fraction_of_every_class_and_leaves_single_rows_alone():
    labels = np.array([5] * 40 + [7] * 20 + [9])
    first, second = stratified_split(labels, 0.25, seed=0)
    assert sorted([*first, *second]) == list(range(61))
    assert [int((labels[second] == name).sum()) for name in (5, 7, 9)] == [10, 5, 0]
    with pytest.raises(ValueError, match="y: 3 rows of 2 classes are too few to split"):
        stratified_split(np.array([0, 0, 1]), 0.9, seed=0)
    with pytest.raises(ValueError, match=r"^label id: 3 rows of 3 .*: another label in each row$"):
        stratified_split(np.array([0, 1, 2]), 0.25, 0, "label id")


def test_encoder_knows_only_the_training_rows():
    nan = np.nan
    train = np.array([[1.0, 5.0, 0.0, 2.0], [3.0, 5.0, 1.0, nan], [5.0, 5.0, 0.0, 4.0]])
    encode = Encoder(train, np.array([False, False, True, False]))
    spread = np.sqrt(8 / 3)
    got = encode(np.array([[3.0 + spread, 6.0, 7.0, nan], [nan, 5.0, 1.0, 3.0]]))
    # columns: two numeric, the one with missing values, its indicator, and a column for each nominal value 0 and 1
    expected = [[1, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1]]
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float32))


def test_encoder_standardises_images_by_channel():
    images = np.random.default_rng(0).normal([[[[3.0]], [[-1.0]]]], [[[[2.0]], [[5.0]]]], (50, 2, 4, 4))
    got = Encoder(images, np.array([False, False]))(images)
    torch.testing.assert_close(got.mean((0, 2, 3)), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(got.std((0, 2, 3), correction=0), torch.ones(2))


def test_npz_takes_its_own_split_and_names(tmp_path):
    train, test = np.arange(0, 60, 2), np.arange(1, 60, 2)
    path = table(tmp_path / "a.npz", train_idx=train, test_idx=test, classes=np.array(["low", "mid", "high"]))
    data = Npz(path)
    assert data.classes == ["low", "mid", "high"]
    assert data.parts["test"].labels.tolist() == np.repeat([0, 1, 2], 20)[test].tolist()
    assert data.parts["predict"] is data.parts["test"]


def test_npz_names_classes_by_their_labels_and_takes_rows_to_predict(tmp_path):
    path = table(tmp_path / "a.npz", y=np.repeat([3, -1, 8], 20))
    new = tmp_path / "new.npz"
    np.savez(new, X=np.zeros((4, 3)))
    data = Npz(path, predict=str(new))
    assert data.classes == ["-1", "3", "8"]
    assert data.parts["predict"].features.shape == (4, 3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": None}, r"path: .*a\.npz has no array X \(it holds y\); accepted is X and y"),
        ({"y": None}, r"has no array y"),
        ({"X": np.zeros(60)}, r"X in .* has shape \(60,\); accepted is \(rows, columns\)"),
        ({"X": np.zeros((60, 3, 3))}, r"X in .* has shape \(60, 3, 3\)"),
        ({"X": np.zeros((0, 3)), "y": np.zeros(0, int)}, r"X in .* has shape \(0, 3\)"),
        ({"X": np.full((60, 3), "a")}, r"X in .* has dtype <U1; accepted are real numbers"),
        ({"X": np.full((60, 3), np.inf)}, r"X in .* has infinite values"),
        (
            {"X": np.tile([1.0, 1e300, -1e153], (60, 1))},
            r"path: column 2 of .* has numbers up to 1e\+300; accepted are n",
        ),
        ({"X": np.full((60, 1, 2, 2), 1e300)}, r"path: channel 0 of .* has numbers up to 1e\+300"),
        ({"y": np.array(["a", "b"] * 30, object)}, r"path: y in .* has dtype object; .*: np.asarray\(y.tolist\(\)\)"),
        ({"y": np.zeros(60)}, r"y in .* has dtype float64; accepted are integers"),
        ({"y": np.full(60, "a")}, r"y in .* has one class; accepted are two or more"),
        ({"y": np.zeros(59, int)}, r"y in .* has shape \(59,\); accepted is \(60,\)"),
        ({"y": np.zeros(60, int)}, r"y in .* has one class"),
        ({"classes": np.array(["a", "b"])}, r"label 2 of y in .* is outside 0\.\.1 \(2 classes\)"),
        ({"train_idx": np.arange(60), "test_idx": np.array([60])}, r"test_idx in .* spans 60\.\.60"),
        ({"train_idx": np.arange(40)}, r"has train_idx alone; accepted are train_idx and test_idx, or neither"),
        ({"test_idx": np.arange(40)}, r"has test_idx alone; accepted are train_idx and test_idx, or neither"),
        ({"train_idx": np.arange(40), "test_idx": np.arange(38, 60)}, r"row 38 is in both .* \(2 such rows\)"),
        ({"train_idx": np.zeros(9), "test_idx": np.arange(9)}, r"train_idx in .* has dtype float64"),
        ({"nominal": np.zeros(2, bool)}, r"nominal in .* has dtype bool, shape \(2,\); accepted is bool, \(3,\)"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path, changed, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Npz(table(tmp_path / "a.npz", **changed))


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path: there is no file nowhere\.npz"):
        Npz("nowhere.npz")
    wreck = tmp_path / "wreck.npz"
    whole = table(tmp_path / "a.npz")
    with open(whole, "rb") as file:
        start = file.read(200)
    for content in (b"", b"nothing of the kind", start):
        wreck.write_bytes(content)
        with pytest.raises(ValueError, match=r"path: cannot read .*wreck\.npz"):
            Npz(str(wreck))
    with pytest.raises(FileNotFoundError, match=r"predict: there is no file nowhere\.npz"):
        Npz(whole, predict="nowhere.npz")
    np.savez(wreck, X=np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"predict: rows of X in .* have shape \(2,\); accepted is \(3,\)"):
        Npz(whole, predict=str(wreck))


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_blank_rows_make_equal_shares(tmp_path, processes):
    data = Npz(table(tmp_path / "a.npz", train_idx=np.arange(0, 60, 2), test_idx=np.arange(1, 60, 4)))
    data.trainer = SimpleNamespace(world_size=processes)
    features, labels = next(iter(data.test_dataloader()))
    assert len(features) == len(labels) == -(-15 // processes) * processes
    assert labels[:15].tolist() == data.parts["test"].labels.tolist()
    assert (labels[15:] == IGNORED).all()
