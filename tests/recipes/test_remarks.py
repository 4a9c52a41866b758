"""What is said of a table before anything is learned from it, and of rows to be labelled."""

import numpy as np
import pytest

from recipes.data.new import features_of
from recipes.data.remarks import remark
from recipes.data.table import Table, of_fit


def held(folder, *lines, label=None):
    path = folder / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    return Table.read(str(path), label)


@pytest.mark.parametrize(
    ("heading", "label", "said"),
    [
        (True, None, "label kind (the last column): 2 classes, 3 rows for training + 1 for testing"),
        (True, "kind", "label kind: 2 classes, 3 rows"),
        (False, None, "label 2 (the last column): 2 classes, 3 rows"),
    ],
)
def test_the_label_is_named(tmp_path, capsys, heading, label, said):
    rows = ["1,x", "2,y", "3,x", "4,y"]
    remark(held(tmp_path, *(["size,kind"] if heading else []), *rows, label=label), np.arange(3), np.arange(3, 4))
    assert capsys.readouterr().out.startswith(said)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["", "", "", ""], "column 'a' is empty: nothing can be learned from it"),
        (["3", "3", "3", "3"], "column 'a' has one value: "),
        (["u", "v", "w", "x"], "column 'a' has another word in each of 4 rows: "),
    ],
)
def test_a_column_that_teaches_nothing_is_named(tmp_path, capsys, column, said):
    table = held(tmp_path, "a,b,kind", *(f"{entry},{i},{i % 2}" for i, entry in enumerate(column)))
    remark(table, np.arange(4), np.arange(4))
    assert f"note: {said}" in capsys.readouterr().err


def test_a_label_that_is_another_in_every_row_is_doubted(tmp_path):
    table = held(tmp_path, "kind,a", *(f"{i % 2},{i / 7}" for i in range(9)))
    with pytest.warns(UserWarning, match=r"label a \(the last column\): 9 of 9 rows are alone .* another: kind"):
        remark(table, np.arange(8), np.arange(8, 9))


def test_what_is_sound_passes_in_silence(tmp_path):
    table = held(tmp_path, "a,b,kind", "1,u,x", "2,v,y", "3,u,x", ",v,y")
    remark(table, np.arange(4), np.arange(4))


# ---------------------------------------------------------------------- rows to be labelled
@pytest.fixture
def schema(tmp_path):
    return held(tmp_path, "a,b,flag,kind", "1,u,True,x", "2.5,v,False,y", ",u,True,x", "4,v,False,y").schema()


class Frame(dict):
    """What a data frame has in common with those of pandas and polars."""

    columns = property(list)


@pytest.mark.parametrize("kind", ["stand-in", "pandas"])
@pytest.mark.parametrize("extra", [False, True])
def test_a_data_frame_goes_by_its_names(schema, kind, extra):
    make = Frame if kind == "stand-in" else pytest.importorskip("pandas").DataFrame
    more = {"other": [1, 2]} if extra else {}
    frame = make({"flag": [True, False], "b": ["v", None], "a": [np.nan, 3], **more})
    np.testing.assert_array_equal(features_of(frame, schema), [[np.nan, 1, 1], [3, np.nan, 0]])
    with pytest.raises(ValueError, match="rows: the data frame has no column b; it has flag, a"):
        features_of(make({"flag": [True], "a": [1.0]}), schema)
    with pytest.raises(ValueError, match="rows: the data frame has no column 'b, mm'; it has flag, a"):
        features_of(make({"flag": [True], "a": [1.0]}), schema | {"columns": ["a", "b, mm", "flag"]})


def test_a_data_frame_of_numbers_for_rows_without_names():
    schema = {"shape": [2], "columns": None, "categories": {}, "classes": ["x", "y"]}
    np.testing.assert_array_equal(features_of(Frame({0: [1, 2], 1: [3.5, None]}), schema), [[1, 3.5], [2, np.nan]])


def test_truth_values_go_by_the_training_s_spelling(tmp_path):
    schema = held(tmp_path, "a,flag,kind", "1,true,x", "2,false,y").schema()
    np.testing.assert_array_equal(features_of(Frame({"a": [1], "flag": [True]}), schema), [[1, 1]])


def test_arrays_of_words_and_of_numbers(schema):
    words = np.array([["2", "u", "False"], ["", "v", "True"]])
    np.testing.assert_array_equal(features_of(words, schema), [[2, 0, 0], [np.nan, 1, 1]])
    np.testing.assert_array_equal(features_of([[2, 0, 0]], schema), [[2.0, 0, 0]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((2, 2)), r"^rows: got 2 columns; accepted are 3, as in training: a, b, flag$"),
        (np.zeros(3), r"^rows: got shape \(3,\); accepted is \(rows, 3\), as in training$"),
        (np.array([["1", "u"]]), r"^rows: the array has 2 columns; accepted are 3, as in training: a, b, flag$"),
        (np.array([["many", "u", "True"]]), r"^rows: column a of the array has 'many' in row 1; accepted are finite"),
    ],
)
def test_rows_unlike_those_of_the_training_are_refused(schema, rows, message):
    with pytest.raises(ValueError, match=message):
        features_of(rows, schema)


def test_empty_columns_and_words_that_are_new_are_said(schema):
    with pytest.warns(UserWarning, match="column") as said:
        features_of(np.array([["", "w", "True"], ["", "z", "False"]]), schema)
    assert [str(one.message) for one in said] == [
        "column 'a' of the array is empty: every value counts as missing",
        "column 'b' of the array has 'w', 'z' in 2 of 2 rows, which training did not show: it counts as missing",
    ]


def test_a_file_that_has_other_rows_by_now_is_not_taken_for_that_of_the_fit(tmp_path):
    first = held(tmp_path, "a,kind", "1,x", "2,y")
    path = str(tmp_path / "a.csv")
    assert of_fit(path, None, first.digest()).columns == ["a"]
    held(tmp_path, "a,kind", "1,x", "3,y")
    with pytest.raises(ValueError, match=r"path: .*a.csv has other rows by now than those that the model was fitted"):
        of_fit(path, None, first.digest())
    of_fit(path, None, None)  # a model of before this was kept


# ---------------------------------------------------------------------- classes
def told(capsys, names, counts, train=None, test=(), **options):
    """What is said of so many rows of each class."""
    labels = np.repeat(np.arange(len(names)), counts)
    rows = np.arange(len(labels))
    table = Table(np.zeros((len(labels), 1)), labels, list(names), np.zeros(1, bool), None, None, {}, "kind")
    remark(table, rows if train is None else rows[train], np.array(test, int), **options)
    shown = capsys.readouterr()
    return shown.out, [line.removeprefix("note: label kind: ") for line in shown.err.splitlines()]


def test_rows_of_each_class_are_counted_where_they_differ(capsys):
    out, notes = told(capsys, ["Asti", "Barolo", "Grignolino"], [6, 42, 52])
    assert out == "label kind: 3 classes, 100 rows for training + 0 for testing; Grignolino 52, Barolo 42, Asti 6\n"
    assert notes == [
        "the most frequent class has 52 training rows, the rarest 6; --weight balanced has each count the same"
    ]
    assert told(capsys, "ab", [30, 40]) == ("label kind: 2 classes, 70 rows for training + 0 for testing\n", [])
    many = [f"class{i}" for i in range(30)]
    assert told(capsys, many, range(1, 31))[0].endswith("class21 22, ..., class1 2, class0 1\n")


def test_weights_are_named_where_none_are_given(capsys):
    assert told(capsys, "ab", [10, 90], weighted=False)[1] == []
    assert told(capsys, "ab", [10, 90], prefix="data.")[1][0].endswith(
        "--model.head.weight '[5, 0.556]' has each count the same"
    )


def test_a_class_without_a_training_row_is_named(capsys):
    train = [*range(5), *range(10, 15)]
    assert told(capsys, "abc", [5, 5, 5], train, [5, 6, 7])[1] == ["no training row is of class b; 3 test rows are"]
    assert told(capsys, "abc", [5, 5, 5], train, [5])[1] == ["no training row is of class b; 1 test row is"]


@pytest.mark.parametrize(
    ("names", "counts", "said"),
    [
        (["Asti", "Barolo"], [1, 3], "class Asti has one row"),
        (["Asti, dry", "Barolo"], [1, 3], "class 'Asti, dry' has one row"),
        (["Asti", "Barolo", "Nebbiolo"], [1, 3, 1], "classes Asti, Nebbiolo have one row each"),
        (["Barolo", "barolo"], [3, 3], "classes Barolo (3 rows) and barolo (3 rows) differ by case alone"),
        (["Barolo", "Barollo"], [20, 2], "classes Barolo (20 rows) and Barollo (2 rows) differ by one letter"),
        (["Barolo", "Barol"], [20, 2], "classes Barolo (20 rows) and Barol (2 rows) differ by one letter"),
        (["Barolo", "Bariolo"], [20, 2], "classes Barolo (20 rows) and Bariolo (2 rows) differ by one letter"),
        (["Barolo", "Baorlo"], [20, 2], "classes Barolo (20 rows) and Baorlo (2 rows) differ by one letter"),
        (["Barolo", "Barola"], [3, 3], None),
        (["a", "b"], [20, 2], None),
        (["class1", "class2"], [20, 2], None),
        (["Barolo", "Asti"], [20, 2], None),
    ],
)
def test_rare_names_and_names_that_are_alike(capsys, names, counts, said):
    notes = told(capsys, names, counts, weighted=False)[1]
    assert notes == ([] if said is None else [said])
