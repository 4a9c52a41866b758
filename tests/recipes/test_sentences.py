"""The files that a tagger reads and writes, beside CoNLL-U."""

import gzip
import json
import tracemalloc

import pytest

from recipes.data import text
from recipes.data.sentences import format_of, read
from recipes.data.vocabulary import Vocabulary

CONLL2003 = """\
-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
# CD B-NP O

# a comment of five words
Peter NNP B-NP _
"""
WNUT = "today\tO\n#\tO\nNew York\tB-location\n\nMade\tO\n"
JSON = '{"tokens": ["EU", "rejects"], "tags": ["B-ORG", null], "id": 7, "ner": [3, 0]}\n\n{"tokens": [], "tags": []}\n'


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def facts(path, column=None, **options):
    return [(sentence.forms, sentence.tags(column)) for sentence in read(path, **options) if sentence.words]


@pytest.mark.parametrize("name", ["eng.train", "train.txt", "a.conll"])
def test_columns(write, name):
    path = write(name, CONLL2003)
    words = [["EU", "rejects", "#"], ["Peter"]]
    assert facts(path) == [(words[0], ["B-ORG", "O", "O"]), (words[1], [None])]
    assert facts(path, "2") == [(words[0], ["NNP", "VBZ", "CD"]), (words[1], ["NNP"])]
    assert facts(path, "4") == facts(path, "last") == facts(path)
    assert "".join(map(str, read(path))) == CONLL2003 + "\n"
    assert read(path)[1].place(2).endswith(f"{name}:5")


def test_columns_parted_by_tabs_may_hold_blanks_and_marks(write):
    assert facts(write("wnut.conll", WNUT)) == [
        (["today", "#", "New York"], ["O", "O", "B-location"]),
        (["Made"], ["O"]),
    ]


def test_json_lines(write):
    path = write("a.jsonl", JSON)
    assert facts(path) == [(["EU", "rejects"], ["B-ORG", None])]
    assert facts(path, "ner") == [(["EU", "rejects"], ["3", "0"])]
    assert [json.loads(str(sentence)) for sentence in read(path)] == [json.loads(x) for x in JSON.split("\n") if x]


def test_plain_text_is_only_tagged(write):
    path = write("a.txt", "Peter doesn't live in New-York, U.S.\n\nOr does he (at 3.5 km)?\n")
    assert format_of(str(path), untagged=True) == "text"
    first, second = read(path, untagged=True)
    assert first.forms == ["Peter", "doesn't", "live", "in", "New-York", ",", "U.S", "."]
    assert second.forms == ["Or", "does", "he", "(", "at", "3.5", "km", ")", "?"]
    assert str(first.tagged("UPOS", list("abcdefgh"))).startswith("Peter\ta\ndoesn't\tb\n")
    with pytest.raises(ValueError, match=r"a.txt:3: got 6 columns; accepted are 1 to 5|got 6 columns"):
        read(path)


def test_what_is_predicted_is_written_into_each_format(write):
    others = [(["X", "Y"], -1.25)]
    columns = read(write("a.conll", "EU NNP O\nrejects VBZ O\n"))[0].tagged(None, ["A", "B"], [0.5, 1.0], others, -0.5)
    assert str(columns) == "EU NNP A 0.5 -0.5000 X -1.2500\nrejects VBZ B 1 -0.5000 Y -1.2500\n\n"
    entry = json.loads(str(read(write("a.jsonl", JSON))[0].tagged(None, ["A", "B"], [0.5, 1.0], others, -0.5)))
    expected = {"tokens": ["EU", "rejects"], "tags": ["A", "B"], "id": 7, "ner": [3, 0]}
    expected |= {"probabilities": [0.5, 1.0], "log_probability": -0.5}
    expected |= {"k_best": [{"tags": ["X", "Y"], "log_probability": -1.25}]}
    assert entry == expected
    blank = "\t_" * 6
    treebank = read(write("a.conllu", f"1\tEU\t_\t_{blank}\n2\trejects\t_\t_{blank}\n"))[0]
    tagged = treebank.tagged("4", ["A", "B"], [0.5, 1.0], others, -0.5)
    above = ["# log p = -0.5000", "# tags_1 (log p -1.2500) = X Y"]
    assert str(tagged).splitlines()[:3] == [*above, "1\tEU" + "\t_" * 7 + "\tTAG=A|P=0.5"]
    assert tagged.forms == treebank.forms


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.conll", "a X Y\n", "NER", r"column: got 'NER'; accepted for .*a.conll are 2, 3, last"),
        ("a.conll", "a X Y\n", "4", r"column: got '4'; accepted for .* are 2, 3, last"),
        (
            "a.conll",
            "a\nb\n",
            None,
            r"column: got 'last'; accepted for .* are none: the file has words alone, as tabs or",
        ),
        ("a.jsonl", JSON, "pos", r"column: got 'pos', which .*a.jsonl:1 does not have; accepted are tags, ner$"),
        (
            "a.jsonl",
            '{"tokens": ["a"], "my labels": ["X"], "pos": ["Y"]}',
            None,
            r"column: got 'tags', which .* accepted are my labels, pos, as --model.column 'my labels'$",
        ),
        (
            "a.jsonl",
            '{"tokens": ["a", "b"], "tags": ["X"]}',
            None,
            r"got 1 tags under tags; accepted is .* 2",
        ),
        ("a.jsonl", '{"tokens": ["a"], "tags": [[1]]}', None, r"a.jsonl:1: got tag '\[1\]'; accepted are strings"),
        ("a.jsonl", "\n{]", None, r"a.jsonl:2: is no JSON"),
        ("a.jsonl", "[" * 100_000, None, r"a.jsonl:1: (is no JSON|has no list)"),
        ("a.jsonl", '{"words": ["a"]}', None, r"a.jsonl:1: has no list of words under tokens \(it has words\)"),
        ("a.conll", "a X\nb\n", None, r"a.conll:2: got 1 columns; accepted are 2, as in the first line: .* empty"),
        ("a.conll", "a X\nb\0 X\n", None, r"a.conll:2: got a NUL byte; accepted is text"),
        (
            "a.conll",
            "\n\n",
            None,
            r"a.conll:1: got no word in the whole file; accepted are .*CoNLL-U, .*JSON lines",
        ),
        ("a.conllu", "9" * 5000 + "\ta" + "\t_" * 8, None, r"a.conllu:1: got ID '9{40}…'; accepted are 3"),
        ("a.conllu", "1\ta" + "\t_" * 8, "WORDS", r"column: got 'WORDS'; accepted are LEMMA, UPOS"),
        ("a.conll.gz", gzip.compress(b"a X\n", mtime=0)[:-6], None, r"a.conll.gz: got a damaged gzip file"),
        ("a.conll", b"a \xff\n", None, r"a.conll:1: got byte 0xff at position 2; accepted is UTF-8"),
    ],
)
def test_what_is_wrong_is_named(write, name, content, column, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.learn(read(write(name, content)), column)


def test_a_bomb_fills_no_memory(write, monkeypatch):
    monkeypatch.setattr(text, "LARGEST", 2**20)
    path = write("bomb.conll.gz", gzip.compress(bytes(2**25)))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"bomb.conll.gz: holds more than 1 MB of text"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
    assert list(text.lines(write("two.gz", gzip.compress(b"a\n", mtime=0) + gzip.compress(b"b\n")))) == ["a", "b", ""]


@pytest.mark.parametrize("given", [None, 3])
def test_what_is_no_sentences(given):
    from recipes.fitted import to_tag

    with pytest.raises(TypeError, match=rf"^sentences: got {given}; accepted is a file, or a list such as "):
        to_tag(given)
