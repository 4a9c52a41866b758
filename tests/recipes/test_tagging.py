"""What is said of tags and texts before a tagger is trained."""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recipes import signatures, start
from recipes.data import tagging
from recipes.data.sentences import read, remark, words_of
from recipes.data.tagging import KINDS, Tags, check
from torch_multiclass import spans_to_tags
from torch_multiclass.schemes import SCHEMES

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def write(tmp_path):
    def write(name, *rows):
        path = tmp_path / name
        text = "".join("".join(f"w{n} X {tag}\n" for n, tag in enumerate(row.split())) + "\n" for row in rows)
        path.write_text("-DOCSTART- X O\n\n" + text)
        return path

    return write


def tags(path, column=None):
    return Tags(read(path), column)


def corpus(scheme, seed=0, size=60):
    """Sentences of spans of two types, some of them neighbours, some of one word."""
    draw = random.Random(seed)
    rows = []
    for _ in range(size):
        spans, at = [], draw.randint(0, 2)
        for _ in range(draw.randint(1, 4)):
            long = draw.randint(1, 3)
            kind = draw.choice("xy")
            if scheme == "IO" and spans and spans[-1][1] == at:
                kind = "xy"[spans[-1][2] == "x"]
            spans.append((at, at + long, kind))
            at += long + draw.choice((0, 0, 1, 2))
        rows.append(" ".join(spans_to_tags(spans, at + 1, scheme)))
    return rows


@pytest.mark.parametrize("scheme", KINDS)
def test_the_scheme_that_fits_is_found(write, scheme):
    held = tags(write("a.conll", *corpus(scheme)))
    assert held.judged(scheme)[1:] == ([], [])
    best = held.fitting()
    assert best[1:] == ([], [])
    # spans of IO are spans of IOB1 as well, in which nothing happens to need a B
    assert best.scheme == {"IO": "IOB1", "BMEWO": "BMEWO"}.get(scheme, scheme)
    assert held.spans() == best


def test_every_scheme_is_one_of_those_compared_by_its_name_or_another():
    assert {id(SCHEMES[name]) for name in KINDS} == {id(one) for one in SCHEMES.values()}


@pytest.mark.parametrize("scheme", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_a_file_in_another_scheme_is_refused_with_the_one_that_fits(write, scheme, given):
    """Whatever it is for, beside a training file in the right one, or by a model that was kept."""
    held = tags(write("a.conll", *corpus(scheme)))
    right = tags(write("b.conll", *corpus(given)))
    for parts in ({"train": held}, {"dev": held, "train": right}, {"train": right, "test": held}, {"test": held}):
        if held.judged(given)[1:] == ([], []):
            check(parts, given, True)
            continue
        with pytest.raises(ValueError, match=rf"fits (--model.scheme )?{held.fitting().scheme}\b.*") as refused:
            check(parts, given, True)
        said, own = str(refused.value), parts.get("train") is held
        assert ("--model.scheme" in said, f": accepted is a file in {given}, into which" in said) == (own, not own)


def test_what_was_held_out_is_judged_with_its_file(write):
    """A slip in the few sentences that were held out is no other scheme."""
    whole = read(write("a.conll", *corpus("BIO"), "O I-x"))
    parts = {"train": Tags(whole[:-1], None), "dev": Tags(whole[-1:], None)}
    assert parts["dev"].fitting().scheme == "IOB1"
    check(parts, "BIO", True)


def test_what_a_kept_model_cannot_give_is_a_line(write, capsys):
    held = tags(write("a.conll", "N V", "N VV"))
    tagging.look("test", held, ["N", "V"], None, True)
    said = capsys.readouterr().err
    assert re.fullmatch(r"note: test: 1 tag is unknown to the model: VV \(.*a.conll:7\)\n", said)
    tagging.look("test", held, ["N", "V", "VV"], None, True)
    assert capsys.readouterr().err == ""
    with pytest.raises(
        ValueError, match=r"; .*b.conll fits IOB1: accepted is a file in BIO, into which torch_multiclass"
    ):
        tagging.look("test", tags(write("b.conll", *corpus("IOB1"))), ["O"], "BIO", True)


def test_a_broken_scheme_has_its_offender_its_count_and_its_way_out(write):
    path = write("a.conll", "O O", *["O O I-x I-x O"] * 20, "O")
    with pytest.raises(ValueError, match=r"^scheme: got BIO, ") as refused:
        check({"train": tags(path)}, "BIO", True)
    assert str(refused.value) == (
        f"scheme: got BIO, which 20 of 22 sentences break, first {path}:8: I-x after O (in sentence 2); {path} fits "
        "IOB1: accepted is --model.scheme IOB1, or --model.constrained false"
    )
    check({"train": tags(path)}, "BIO", False)
    check({"train": tags(path)}, "IOB1", True)


@pytest.mark.parametrize(
    ("row", "scheme", "words"),
    [
        ("I-x O", "BIO", "I-x at the start"),
        ("O B-x I-y", "BIO", "I-y after B-x"),
        ("O B-x", "BIOES", "B-x at the end"),
        ("O B-x _ I-x O E-x", "BIOES", "O after I-x"),
    ],
)
def test_how_a_scheme_is_broken(write, row, scheme, words):
    held = tags(write("a.conll", row))
    assert words in held.first_break(held.judged(scheme))


def test_a_few_slips_are_no_reason_to_refuse(write):
    held = tags(write("a.conll", *corpus("BIO"), "O I-x"))
    assert len(held.judged("BIO").broken) == 1
    check({"train": held}, "BIO", True)


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_a_tag_that_is_none_has_its_place_in_whatever_file(write, part):
    good = tags(write("good.conll", *corpus("IOB1")))
    bad = tags(write("typo.conll", *corpus("IOB1"), "O I-x", "I_x O I_x"))
    text = Path(bad.path).read_text()
    line = 1 + text[: text.index("I_x")].count("\n")
    with pytest.raises(
        ValueError, match=rf"^tags: 'I_x' is not an IOB1 tag \(.*typo.conll:{line}, 2 times\); accepted"
    ):
        check({"train": good, part: bad}, "IOB1", True)


def test_tags_that_are_no_spans_need_no_scheme(write):
    with pytest.raises(ValueError, match=r"'N' is not a BIO .*:3, 3 times, and 1 other tag\); .* need no --model.sc"):
        check({"train": tags(write("a.conll", "N V", "N N"))}, "BIO", True)


@pytest.mark.parametrize(
    ("rows", "scheme", "words"),
    [
        (corpus("IOB1"), None, "the tags look like spans in IOB1; --model.scheme IOB1 measures"),
        ([*corpus("BIO"), "O I-x"], None, "the tags look like spans in BIO;"),
        ([*corpus("IOB1"), "O I-xxx", "O I-xxx", "I-xxy"], "IOB1", r"1 tag is seen once: I-xxy \(.*:\d+, like I-xxx\)"),
        (["N V", "N V", "X Y Z W V V"], None, r"4 tags are seen once: X \(.*:9\), Y \(.*:10\), Z \(.*:11\), 1 more"),
        (["N V", "N V"], None, None),
        (corpus("IOB1"), "IOB1", None),
    ],
)
def test_what_looks_like_a_mistake_is_a_line(write, rows, scheme, words, capsys):
    tagging.notes({"train": tags(write("a.conll", *rows))}, scheme)
    tagging.notes({"train": tags(write("a.conll", *rows))}, scheme)
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == (words is not None)  # once
    if words is not None:
        assert re.match(rf"note: .*a.conll: {words}", shown[0])


def test_a_tag_that_training_does_not_have_is_a_line(write, capsys):
    parts = {"train": tags(write("a.conll", "N V", "N V")), "dev": tags(write("b.conll", "N V", "N VV"))}
    tagging.notes(parts, None)
    assert "note: dev: 1 tag is not in " in capsys.readouterr().err
    tagging.notes({"train": tags(write("c.conll", *corpus("BIO")))}, None, resumed=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kinds", [("BIO", "IOB1"), ("IOB1", "BIO"), ("BIO", "BIOES"), ("BIO", "BIO")])
def test_a_file_in_another_scheme_is_a_line_without_one_to_hold_it_to(write, kinds, capsys):
    train, dev = (tags(write(f"{n}.conll", *corpus(kind, seed=n))) for n, kind in enumerate(kinds))
    tagging.notes({"train": train, "dev": dev}, None)
    said = f"note: dev: {dev.path} fits {kinds[1]}, {train.path} {kinds[0]}; accepted is a file in {kinds[0]}, into"
    assert (said in capsys.readouterr().err) == (kinds[0] != kinds[1])


@pytest.mark.parametrize(("words", "kind", "count"), [(1001, None, 1), (1000, None, 0), (1001, "text", 0)])
def test_a_sentence_without_end_is_a_line(tmp_path, capsys, words, kind, count):
    path = tmp_path / "a.conll"
    path.write_text("".join(f"w{n} O\n" for n in range(words)))
    for _ in range(2):
        read(path, kind, untagged=kind == "text")
    said = f"note: {path}:1: a sentence of {words} words begins; an empty line ends a sentence\n"
    assert capsys.readouterr().err == said * count


def test_other_processes_are_silent(monkeypatch, capsys):
    monkeypatch.setenv("LOCAL_RANK", "1")
    start.note("said by the first alone")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        (corpus("IOB1"), "--model.scheme BIO", r"error: scheme: got BIO, which \d+ of 60 sentences break"),
        (corpus("IOB1"), "--model.scheme IOB1 --data.dev DEV", r"error: tags: 'N' is not an IOB1 tag \(.*dev.conll:3"),
        (["_ _"], "", r"error: .*a.conll: got no tag in column last"),
    ],
)  # fmt: skip
def test_tags_are_looked_at_before_torch_is_loaded_and_leave_no_folder(write, tmp_path, rows, line, message):

    dev = write("dev.conll", "N V")
    command = ["tag", "fit", "--data.train", str(write("a.conll", *rows)), *line.replace("DEV", str(dev)).split()]
    script = (
        "import sys\nfrom recipes import start\n"
        "try:\n    start.run(sys.argv[1:])\nexcept SystemExit as end:\n    print(end)\n"
        "print('torch' in sys.modules, 'lightning' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command], cwd=tmp_path, env={"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    said, loaded = done.stdout.splitlines()
    assert re.match(message, said)
    assert loaded == "False False"
    assert not (tmp_path / "runs").exists()


def test_text_may_be_parted_already(tmp_path, capsys):
    assert words_of("for $37K, U.S.") == ["for", "$", "37K", ",", "U.S", "."]
    assert words_of(" for $37K,  U.S.", split=False) == ["for", "$37K,", "U.S."]
    path = tmp_path / "a.txt"
    path.write_text("Mr Smith paid $37K .\nto Rome\n")
    found = read(path, untagged=True, split=False)
    assert [one.forms for one in found] == [["Mr", "Smith", "paid", "$37K", "."], ["to", "Rome"]]
    remark(str(path), read(path, untagged=True), True)
    assert "text, parted into words and punctuation marks; --data.split_text false" in capsys.readouterr().err
    remark(str(path), found, False)
    path.write_text("a b\nc d e\n")
    remark(str(path), read(path, untagged=True), True)
    assert capsys.readouterr().err == ""
    path.write_text("Mr Smith paid\n")
    remark(str(path), read(path, untagged=True), True)
    assert "read as columns, the first of which has the words; --data.format text reads" in capsys.readouterr().err


def test_what_stands_where_is_said(write, tmp_path):
    columns = read(write("a.conll", "O O"))[1]
    assert columns.layout(None, True, 3) == (
        "columns word, column 2, tag, its probability, the tagging's log-probability, tag of the 2nd best tagging, its "
        "log-probability, tag of the 3rd best tagging, its log-probability"
    )
    others = [(["C", "D"], -1.5), (["E", "F"], -2.25)]
    lines = str(columns.tagged(None, ["A", "B"], [0.5, 1.0], others, -0.25)).splitlines()
    assert [line.split()[2:] for line in lines if line] == [
        ["A", "0.5", "-0.2500", "C", "-1.5000", "E", "-2.2500"],
        ["B", "1", "-0.2500", "D", "-1.5000", "F", "-2.2500"],
    ]
    assert columns.layout("2", False, 1) == "columns word, tag, column 3"
    width = len(str(columns.tagged("2", ["A", "B"], [0.5, 1.0])).splitlines()[0].split())
    assert width == columns.layout("2", True, 1).count(",") + 1
    (tmp_path / "a.txt").write_text("a b\nc d e\n")
    assert read(tmp_path / "a.txt", untagged=True)[0].layout("UPOS", True, 1) == "columns word, tag, its probability"
    (tmp_path / "a.jsonl").write_text('{"tokens": ["a"]}\n')
    said = read(tmp_path / "a.jsonl")[0].layout(None, True, 2)
    assert said.startswith(
        "tags under tags, their probabilities under probabilities, the log-probability of the tagging under "
        "log_probability, the next"
    )
    (tmp_path / "a.conllu").write_text("1\ta" + "\t_" * 8 + "\n\n")
    said = read(tmp_path / "a.conllu")[0].layout("MISC:NER", True, 2)
    assert (
        said == "tags in MISC:NER, their probabilities in MISC:P, the log-probability and the next best taggings in "
        "comments above each sentence"
    )


def test_the_recipe_takes_every_scheme():
    kind = signatures.parameters(CHECKOUT / "recipes/models/tagger.py", "Tagger")["scheme"]
    for scheme in SCHEMES:
        assert signatures.accepts(kind, scheme, CHECKOUT / "recipes/models/tagger.py")
    assert not signatures.accepts(kind, "BIOX", CHECKOUT / "recipes/models/tagger.py")
