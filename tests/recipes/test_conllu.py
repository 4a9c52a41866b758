import gzip

import conllu
import pytest

from recipes.data.conllu import Column, read
from recipes.data.treebank import split
from recipes.data.vocabulary import Vocabulary, clipped, lowered, shape

TEXT = """\
# newdoc id = a
# text = Vou ao mar .
1\tVou\tir\tVERB\tV\tMood=Ind\t0\troot\t_\tSpaceAfter=No|NER=O
2-3\tao\t_\t_\t_\t_\t_\t_\t_\tSpacesAfter=\\s\\n
2\ta\ta\tADP\t_\t_\t4\tcase\t_\tNER=B-LOC
3\to\to\tDET\t_\t_\t4\tdet\t_\tGloss=the|NER=I-LOC|X
4\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_
4.1\t_\t_\t_\t_\t_\t_\t_\t1:x\t_
5\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_

# sent_id = words of three letters and more
1\tágua doce\t_\tNOUN\t_\t_\t_\t_\t_\t_

"""


@pytest.fixture
def sentences(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_bytes(TEXT.encode())
    return read(path)


def test_a_file_comes_out_as_it_went_in(sentences):
    assert "".join(map(str, sentences)) == TEXT
    theirs = conllu.parse(TEXT)
    for ours, other in zip(sentences, theirs, strict=True):
        words = [token for token in other if isinstance(token["id"], int)]
        assert ours.forms == [token["form"] for token in words]
        assert ours.tags(Column.parse("UPOS")) == [token["upos"] for token in words]


@pytest.mark.parametrize(
    "write",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.removesuffix("\n\n"),
        lambda text: "\n\n" + text.replace("\n\n", "\n \n\n"),
    ],
)
def test_line_ends_and_blank_lines_do_not_matter(tmp_path, write):
    path = tmp_path / "b.conllu.gz"
    path.write_bytes(gzip.compress(write(TEXT).encode()))
    assert "".join(map(str, read(path))) == TEXT


def test_only_the_words_cell_changes(sentences):
    tagged = sentences[0].tagged(Column.parse("upos"), list("abcde"))
    assert tagged.tags(Column.parse("UPOS")) == list("abcde")
    for before, after in zip(sentences[0].lines, tagged.lines, strict=True):
        old, new = before.split("\t"), after.split("\t")
        if before.split("\t")[0].isdigit():
            old[3] = new[3]
        assert old == new


def test_a_key_of_misc(sentences):
    column = Column.parse("MISC:NER")
    assert sentences[0].tags(column) == ["O", "B-LOC", "I-LOC", None, None]
    lines = sentences[0].tagged(column, list("vwxyz")).lines
    cells = [line.split("\t")[9] for line in lines if line[0].isdigit()]
    assert cells == [
        "SpaceAfter=No|NER=v", "SpacesAfter=\\s\\n", "NER=w", "Gloss=the|NER=x|X", "NER=y", "_", "NER=z",
    ]  # fmt: skip


LINE = "1\ta\t_\tX" + "\t_" * 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"c.conllu:1: got no word in the whole file"),
        (b"# only = comments\n\n", r"c.conllu:1: got no word in the whole file"),
        (f"# x\n{LINE}\t_\n".encode(), r"c.conllu:2: got 11 tab-separated columns; accepted are the 10"),
        (f"{LINE}\n\n1 a b\n".encode(), r"c.conllu:3: got 1 tab-separated columns"),
        (LINE.encode() + b"\n\n# \xff\n", r"c.conllu:3: got byte 0xff at position 2; accepted is UTF-8"),
        (LINE.replace("1", "one").encode(), r"c.conllu:1: got ID 'one'"),
        (f"{LINE}\n{LINE}\n".encode(), r"c.conllu:2: got word 1; accepted here is word 2; is the blank line"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-12], r"c.conllu: got a damaged gzip file"),
    ],
)
def test_a_bad_file_is_an_error_with_its_line(tmp_path, content, message):
    path = tmp_path / "c.conllu"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read(path)


@pytest.mark.parametrize("name", ["FORM", "UPOS:X", "MISC:", "MISC:a=b", "tags"])
def test_a_bad_column_is_an_error(name):
    with pytest.raises(ValueError, match=r"column: got .*; accepted are LEMMA, UPOS, .* and MISC:KEY"):
        Column.parse(name)


def test_the_split_holds_out_two_of_ten():
    train, dev, test = split(list(range(25)))
    assert (dev, test) == ([8, 18], [9, 19])
    assert train == [i for i in range(25) if i % 10 < 8]


def test_what_words_look_like():
    assert lowered("Nº-2026") == "nº-0000"
    assert shape("McDonald's") == "XxXxx'x"
    assert shape("1,234.5") == "0,00.0"
    assert shape("日本") == "oo"
    assert len(clipped("http://" + "x" * 99)) == 24


def test_a_vocabulary_survives_being_plain_data(sentences):
    vocabulary = Vocabulary.learn(sentences * 2, "UPOS")
    again = Vocabulary(**vocabulary.state())
    assert again.state() == vocabulary.state()
    for form in ("mar", "MAR", "novo", ""):
        assert again.encode(form) == vocabulary.encode(form)
        assert again.knows(form) == (form.lower() == "mar")
    assert vocabulary.tags == ["ADP", "DET", "NOUN", "PUNCT", "VERB"]
    assert [vocabulary.tag_number(tag) for tag in ("ADP", "X", "SYM", "X")] == [0, 5, 6, 5]


def test_a_column_without_tags_is_an_error(sentences):
    with pytest.raises(ValueError, match=r"a.conllu: got no tag in column LEMMA"):
        Vocabulary.learn(sentences[1:], "LEMMA")
