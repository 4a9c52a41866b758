"""What the entries of a table mean: numbers however they are spelled, missing ones, words; columns left out."""

import numpy as np
import pytest

from recipes.data.cells import Remarks, respelled, settled
from recipes.data.new import features_of, new_features
from recipes.data.remarks import remark
from recipes.data.table import Table

LABELS = ["x", "y"] * 10


def table(folder, *columns, mark=",", names="abcdefgh", label=None, ignore=None, heading=True, file="t.csv"):
    """Of columns, the label behind them."""
    head = [mark.join([*names[: len(columns)], "kind"])] if heading else []
    lines = [mark.join(row) for row in zip(*columns, LABELS, strict=True)]
    (folder / file).write_text("\n".join([*head, *lines]) + "\n")
    return Table.read(str(folder / file), label, ignore)


def numbers(count=20, seed=0):
    return [f"{value:.2f}" for value in np.random.default_rng(seed).normal(10, 3, count)]


# ---------------------------------------------------------------------- spellings
@pytest.mark.parametrize(
    ("entries", "comma", "expected"),
    [
        (["11,03", "12"], False, ["11.03", "12"]),
        (["1.234,5", "2,5", "1.000"], False, ["1234.5", "2.5", "1000"]),
        (["-0,5", "+3,25e-2", ",5"], False, ["-0.5", "+3.25e-2", ".5"]),
        (["1,234", "5"], False, ["1.234", "5"]),
        (["1,234", "5"], True, ["1234", "5"]),
        (["1,234.5", "12,000"], True, ["1234.5", "12000"]),
        (["1,234.5", "12,000.5"], False, ["1234.5", "12000.5"]),
        (["11,03", "2,5"], True, ["11.03", "2.5"]),
        (["1.5", "2.5", "1,5"], False, ["1.5", "2.5", None]),
        (["1,5", "2,5", "1.5"], False, ["1.5", "2.5", None]),
        (["a,b", "c"], False, [None, None]),
        (["1.5", "2"], False, ["1.5", "2"]),
        ([",", "", "3"], False, [None, "", "3"]),
    ],
)
def test_numbers_are_read_in_the_spelling_that_most_have(entries, comma, expected):
    assert respelled(entries, comma) == expected


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_table_with_decimal_commas_is_that_with_points(tmp_path, capsys, mark):
    columns = numbers(), numbers(seed=1)
    plain = table(tmp_path, *columns)
    found = table(tmp_path, *([one.replace(".", ",") for one in column] for column in columns), mark=mark, file="g.csv")
    np.testing.assert_array_equal(found.features, plain.features)
    assert found.categories == {}
    first = columns[0][0]
    assert capsys.readouterr().err == (
        f"note: {tmp_path}/g.csv: in column 'a' {first.replace('.', ',')!r} is read as {first}, and likewise in 1 "
        "other column\n"
    )
    again = new_features(str(tmp_path / "g.csv"), plain.schema())
    np.testing.assert_array_equal(again, plain.features)


# ---------------------------------------------------------------------- stray entries
@pytest.mark.parametrize("stray", [{8: "13.2 g"}, {3: "13,2", 4: "low"}])
def test_numbers_but_for_a_few_are_numbers(tmp_path, capsys, stray):
    column = numbers()
    for row, entry in stray.items():
        column[row] = entry
    with pytest.warns(UserWarning, match="is numbers but for") as lost:
        held = table(tmp_path, column, numbers(seed=1), mark=";")
    assert held.categories == {}
    assert np.flatnonzero(np.isnan(held.features[:, 0])).tolist() == [*stray]
    shown = ", ".join(f"{entry!r} (line {row + 2})" for row, entry in stray.items())
    count = "1 entry, which counts" if len(stray) == 1 else "2 entries, which count"
    assert [str(one.message) for one in lost] == [
        f"{tmp_path}/t.csv: column 'a' is numbers but for {count} as missing: {shown}"
    ]
    assert capsys.readouterr().err.splitlines() == [
        f"note: {tmp_path}/t.csv: {len(stray)} of 40 values are missing, in {len(stray)} of 20 rows",
    ]


def test_what_half_are_numbers_is_words_and_said(tmp_path, capsys):
    held = table(tmp_path, ["1"] * 14 + ["low"] * 6, numbers())
    assert held.categories == {0: ["1", "low"]}
    assert "column 'a': 14 of 20 entries are numbers, but 6 are not, 'low' (line 16)" in capsys.readouterr().err


def test_words_are_words_in_silence_unless_they_are_many(tmp_path, capsys):
    table(tmp_path, ["red", "blue"] * 10, numbers())
    assert capsys.readouterr().err == ""
    remarks = Remarks("here", str)
    settled("name", [f"w{i % 60}" for i in range(90)], remarks, True)
    assert remarks.lines == [
        "column 'name' has 60 words in 90 rows, each of which becomes a column; --ignore leaves it out"
    ]


def test_rows_of_a_file_with_lines_in_between_are_named_by_their_lines(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("a,b,kind\n\n" + "\n\n".join(f"{i},{'?!' if i == 7 else i},{'xy'[i % 2]}"
                                                                 for i in range(20)))  # fmt: skip
    with pytest.warns(UserWarning, match=r"'\?!' \(line 17\)"):
        Table.read(str(tmp_path / "a.csv"))
    (tmp_path / "a.csv").write_text("a,kind\n1,x\n\n2,\n3,\n4,y\n")
    where = (
        r"row 2 of .* has no label in column kind \(the last column\), which is line 4 of the file; 2 rows have none"
    )
    with pytest.raises(ValueError, match=where):
        Table.read(str(tmp_path / "a.csv"))


# ---------------------------------------------------------------------- missing ones
SPELLINGS = ["?", "n/a ", " N/A", "NA", "NaN", "null", ""]


@pytest.mark.parametrize(
    ("spelling", "words"),
    [*((one, words) for one in SPELLINGS for words in (False, True)), ("-", False), ("None", False)],
)
def test_missing_entries_however_spelled(tmp_path, capsys, spelling, words):
    column = ["red", "blue"] * 10 if words else numbers()
    held = table(tmp_path, [spelling, *column[1:]], numbers(seed=1))
    assert np.flatnonzero(np.isnan(held.features[:, 0])).tolist() == [0]
    assert held.nominal.tolist() == [words, False]
    which = f" ({spelling.strip()!r} 1 time)" if spelling else ""
    assert capsys.readouterr().err == f"note: {tmp_path}/t.csv: 1 of 40 values are missing, in 1 of 20 rows{which}\n"
    again = new_features(str(tmp_path / "t.csv"), held.schema())
    np.testing.assert_array_equal(again, held.features)


def test_words_that_training_did_not_show_are_not_missing_ones(tmp_path, capsys):
    schema = table(tmp_path, ["red", "blue"] * 10, numbers()).schema()
    (tmp_path / "new.csv").write_text("a,b\ngreen,1\nred,\nred,3\n")
    with pytest.warns(UserWarning, match="'green' in 1 of 3 rows"):
        found = new_features(str(tmp_path / "new.csv"), schema)
    assert np.isnan(found).tolist() == [[True, False], [False, True], [False, False]]
    assert capsys.readouterr().err == f"note: {tmp_path}/new.csv: 1 of 6 values are missing, in 1 of 3 rows\n"


# ---------------------------------------------------------------------- columns that are left out
def names_of(count=20):
    return [f"W{i:03d}" for i in range(count)]


def test_a_column_with_another_word_in_each_row_is_left_out(tmp_path, capsys):
    held = table(tmp_path, names_of(), numbers())
    plain = table(tmp_path, numbers(), names="b", file="plain.csv")
    np.testing.assert_array_equal(held.features, plain.features)
    assert (held.columns, held.left_out) == (["b"], {"a": "has another word in each of 20 rows"})
    remark(held, np.arange(15), np.arange(15, 20))
    assert capsys.readouterr().err == (
        "note: column 'a' has another word in each of 20 rows: it is left out, and predict writes it beside the "
        "labels\n"
    )
    (tmp_path / "new.csv").write_text("b\n3\n")  # which need not have it
    np.testing.assert_array_equal(new_features(str(tmp_path / "new.csv"), held.schema()), [[3.0]])


@pytest.mark.parametrize("ignore", ["b", ["b"], "b, c", ["c", "b"]])
def test_columns_are_left_out_as_asked(tmp_path, ignore):
    columns = numbers(), numbers(seed=1), ["u", "v"] * 10, numbers(seed=2)
    held = table(tmp_path, *columns, ignore=ignore)
    left = ["a", "d"] if "c" in ignore else ["a", "c", "d"]
    assert held.columns == left
    np.testing.assert_array_equal(held.features[:, -1], np.array(columns[3], float))
    rows = np.array([*columns, LABELS]).T  # by place, with the label or without
    for given in (rows, rows[:, :-1], rows[:, [0, 3] if "c" in ignore else [0, 2, 3]]):
        np.testing.assert_array_equal(features_of(given, held.schema()), held.features)


def test_a_column_whose_squares_overflow_is_named(tmp_path):
    wide = [*numbers()[:-1], "-1e300"]
    for heading, name in ((True, "b"), (False, "2")):
        with pytest.raises(
            ValueError, match=rf"^path: column {name} of .* has numbers up to 1e\+300; accepted are numb"
        ):
            table(tmp_path, numbers(), wide, heading=heading)
    held = table(tmp_path, numbers(), numbers(seed=1))
    with pytest.raises(ValueError, match=r"^rows: column b of the array has numbers up to 1e\+300"):
        features_of(np.array([["1", "1e300"]]), held.schema())


def test_columns_without_names_are_left_out_by_their_numbers(tmp_path):
    held = table(tmp_path, numbers(), numbers(seed=1), ignore="1", heading=False)
    assert held.left_out == {"1": "is ignored, as asked"}
    np.testing.assert_array_equal(held.features[:, 0], np.array(numbers(seed=1), float))
    np.savez(tmp_path / "a.npz", X=np.arange(12.0).reshape(4, 3), y=np.array([0, 1, 0, 1]))
    held = Table.read(str(tmp_path / "a.npz"), None, "2")
    assert held.features[0].tolist() == [0, 2]
    assert features_of(np.arange(12.0).reshape(4, 3), held.schema())[0].tolist() == [0, 2]
    assert new_features(str(tmp_path / "a.npz"), held.schema())[0].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("ignore", "message"),
    [
        ("z", r"ignore: 'z' is no column of .*t.csv; accepted are a, b"),
        ("kind", r"ignore: 'kind' is the label of .*t.csv; accepted are a, b"),
        ("a,b", r"path: no column of .*t.csv is left to learn from"),
    ],
)
def test_what_cannot_be_left_out_is_said(tmp_path, ignore, message):
    with pytest.raises(ValueError, match=message):
        table(tmp_path, numbers(), numbers(seed=1), ignore=ignore)
