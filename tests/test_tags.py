"""Constraints of tag schemes against regular expressions of whole spans."""

from __future__ import annotations

import itertools
import random
import re
import warnings

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.metrics import SpanF1
from torch_multiclass.tags import SCHEMES, impossible, parse


def spans_are_legal(scheme: str, tags: list[str]) -> bool:
    """Whether a regular expression of whole spans matches; types X and Y."""
    line = "".join(tag.replace("-", "") + " " for tag in tags)
    span = {
        "BIO": lambda t: f"B{t} (I{t} )*",
        "BIOES": lambda t: f"(S{t} |B{t} (I{t} )*E{t} )",
        "BILOU": lambda t: f"(U{t} |B{t} (I{t} )*L{t} )",
        "BMES": lambda t: f"(S{t} |B{t} (M{t} )*E{t} )",
        "BMEWO": lambda t: f"(W{t} |B{t} (M{t} )*E{t} )",
        "IOE2": lambda t: f"(I{t} )*E{t} ",
        "IO": lambda t: f"I{t} ",
    }
    if scheme in span:
        return re.fullmatch(f"(O |{span[scheme]('X')}|{span[scheme]('Y')})*", line) is not None
    if scheme == "IOE1":  # E only right before a span of the same type
        return all(
            tag[0] != "E" or (n + 1 < len(tags) and tags[n + 1] != "O" and tags[n + 1][2:] == tag[2:])
            for n, tag in enumerate(tags)
        )
    # IOB1: B only right after a span of the same type
    return all(
        tag[0] != "B" or (n > 0 and tags[n - 1] != "O" and tags[n - 1][2:] == tag[2:]) for n, tag in enumerate(tags)
    )


def tags_of(scheme, kinds):
    return ["O", *(f"{p}-{t}" if t else p for t in kinds for p in SCHEMES[scheme].letters)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_constraints_allow_exactly_the_legal_sequences(scheme):
    tags = tags_of(scheme, "XY")
    allowed = tm.tag_constraints(tags, scheme)
    scheme = {"IOB2": "BIO", "IOBES": "BIOES", "BILUO": "BILOU", "BMESO": "BMES"}.get(scheme, scheme)
    for n in range(1, 5 if len(tags) < 8 else 4):
        every = torch.tensor(list(itertools.product(range(len(tags)), repeat=n)))
        scores = tm.ChainScores(torch.zeros(n, len(tags)), allowed.transitions, start=allowed.start, end=allowed.end)
        possible = scores.score(every) == 0
        expected = [spans_are_legal(scheme, [tags[y] for y in row]) for row in every.tolist()]
        assert possible.tolist() == expected


def test_bad_tags_are_named():
    with pytest.raises(ValueError, match=r"tags: 'I_PER' is not an IOB1 tag; accepted are 'O', 'I-"):
        tm.tag_constraints(["O", "I_PER"], "IOB1")
    with pytest.raises(ValueError, match=r"tags: 'X-PER' is not a BIO tag; accepted are 'O', 'B-\.\.\.', 'I-\.\.\.'"):
        tm.tag_constraints(["O", "X-PER"])
    with pytest.raises(ValueError, match="tags: 'O' is given twice"):
        tm.tag_constraints(["O", "O"])
    with pytest.raises(ValueError, match="scheme: got 'BMEX'; accepted are 'BIO', 'IOB1', 'BIOES'"):
        tm.tag_constraints(["O"], "BMEX")


def test_tags_without_a_type_mean_the_same_everywhere():
    """One parser: what constraints accept, the metric of spans reads, as spans of the one empty type."""
    bare, typed = ["O", "B", "I"], ["O", "B-X", "I-X"]
    for one, other in zip(tm.tag_constraints(bare), tm.tag_constraints(typed), strict=True):
        assert torch.equal(one, other)
    gold, guess = torch.tensor([[1, 2, 0, 1, 1, 2, 0]]), torch.tensor([[1, 2, 0, 1, 2, 2, 2]])
    found = []
    for tags in (bare, typed):
        metric = SpanF1(tags)
        metric.update(guess, gold)
        found.append((metric.compute(), list(metric.by_type().values())))
    assert found[0] == found[1]
    assert SpanF1(bare).types == [""]
    for tags in (["O", "S", "B", "I", "E"], ["O", "S-X", "S", "B-X", "I-X", "E-X", "B", "I", "E"]):
        assert len(SpanF1(tags).types) == len({tag[1:] for tag in tags[1:]})
        assert tm.tag_constraints(tags, "BIOES").transitions.shape == (len(tags), len(tags))


@pytest.mark.parametrize(("name", "alias"), [("BIO", "IOB2"), ("BIOES", "IOBES")])
def test_schemes_with_two_names(name, alias):
    tags = ["O", "B-X", "I-X", "B-Y", "I-Y"] + (["S-X", "E-X", "S-Y", "E-Y"] if name == "BIOES" else [])
    for one, other in zip(tm.tag_constraints(tags, name), tm.tag_constraints(tags, alias), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("odd", ["NOUN", "X-PER", "b-PER", "-PER", "", "O-PER", "BI", "BI-PER"])
def test_what_is_no_tag_is_named_by_both(odd):
    with pytest.raises(ValueError, match=f"tags: got {odd!r}; accepted are 'O', 'B-"):
        SpanF1(["O", odd])
    with pytest.raises(ValueError, match=f"tags: {odd!r} is not a BIO tag"):
        tm.tag_constraints(["O", odd])


@pytest.mark.parametrize("kinds", [("X", "Y"), ("",)])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_spans_are_written_and_read(scheme, kinds):
    """Any spans: what is written is legal, well-formed, and read as the same spans, leniently and strictly."""
    rng = random.Random(0)
    allowed = tm.tag_constraints(tags_of(scheme, kinds), scheme)
    for _ in range(200):
        length, spans, at = rng.randrange(9), [], 0
        while at < length:
            start = at + (0 if rng.random() < 0.5 else 1)
            end = min(length, start + rng.randrange(1, 4))
            kind = rng.choice(kinds)
            if start < end and not (scheme == "IO" and spans and spans[-1][1:] == (start, kind)):
                spans.append((start, end, kind))
            at = end
        tags = tm.spans_to_tags(rng.sample(spans, len(spans)), length, scheme)
        assert tm.tag_spans(tags, scheme) == spans
        apart = all((a[1], a[2]) != (b[0], b[2]) for a, b in itertools.pairwise(spans))
        lone = scheme == "IOE1" and not apart  # seqeval's rules of IOE1 leave out an E that is a whole span
        if not lone:
            assert tm.tag_spans(tags, scheme, strict=True) == spans
        numbers = torch.tensor([tags_of(scheme, kinds).index(tag) for tag in tags], dtype=torch.long)
        scores = tm.ChainScores(
            torch.zeros(length, len(allowed.start)), allowed.transitions, start=allowed.start, end=allowed.end
        )
        assert scores.score(numbers) == 0
        for other in SCHEMES:
            if other != "IO" or apart:
                assert tm.convert_tags(tags, other, scheme=scheme) == tm.spans_to_tags(spans, length, other)


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ([(0, 0, "X")], r"spans: got \(0, 0, 'X'\); accepted are spans in 0\.\.4"),
        ([(0, 3, "X"), (2, 4, "Y")], "spans: got .*that do not overlap"),
        ([(3, 5, "X")], r"spans: got \(3, 5, 'X'\)"),
    ],
)
def test_bad_spans_are_named(spans, words):
    with pytest.raises(ValueError, match=words):
        tm.spans_to_tags(spans, 4)
    with pytest.raises(ValueError, match="spans: has neighbours of one type, which 'IO' cannot keep apart"):
        tm.spans_to_tags([(0, 1, "X"), (1, 2, "X")], 4, "IO")


def test_a_scheme_that_cannot_hold_the_spans_of_tags_is_named():
    with pytest.raises(ValueError, match="to: got 'IO', which cannot keep neighbours of one type apart"):
        tm.convert_tags(["B-X", "B-X", "O"], "IO")
    assert tm.convert_tags(["B-X", "B-Y", "O"], "IO") == ["I-X", "I-Y", "O"]


@pytest.mark.parametrize(
    ("tags", "scheme", "lost", "others"),
    [
        (["O", "I-PER"], "BIO", "'I-PER'", "; each tag has one in IOB1, IO, IOE1"),
        (["O", "B-A", "I-A", "I-B"], "IOB2", "'I-B'", "; each tag has one in IOB1"),
        (["O", "B-A", "E-A", "I-B", "S-B"], "BIOES", "'I-B'", ""),
        (["O", "B-A", "S-A"], "BIOES", "'B-A'", ""),
        (["O", "B-PER", "I-PER", "I-PRE"], "BIO", "'I-PRE'", "; each tag has one in IOB1; meant may be 'I-PER'"),
        (["O", "B-A"], "IOB1", "'B-A'", "; each tag has one in BIO, IOB2"),
        (["O", *(f"I-{n}" for n in range(7))], "BIO", "'I-0', 'I-1', 'I-2', 'I-3', 'I-4' and 2 more", "; each"),
    ],
)
def test_tags_that_can_stand_nowhere_are_named(tags, scheme, lost, others):
    with pytest.warns(
        UserWarning, match=re.escape(f"tags: {lost} can stand in no tagging of {scheme} that is made")
    ) as said:
        tm.tag_constraints(tags, scheme)
    assert others in str(said[0].message)
    assert others or "each" not in str(said[0].message)


@pytest.mark.parametrize("scheme", ["BIO", "IOB1", "BIOES", "IO", "IOE1", "IOE2"])
def test_what_can_stand_nowhere_by_enumeration(scheme):
    every = tags_of(scheme, "XY")
    for size in range(1, 5):
        for tags in itertools.combinations(every, size):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                allowed = tm.tag_constraints(tags, scheme)
            found = set()
            for n in range(1, size + 1):
                rows = torch.tensor(list(itertools.product(range(size), repeat=n)))
                scores = tm.ChainScores(torch.zeros(n, size), allowed.transitions, start=allowed.start, end=allowed.end)
                found |= {*rows[scores.score(rows) == 0].flatten().tolist()}
            expected = [n for n in range(size) if n not in found]
            assert impossible(parse(tags, scheme), SCHEMES[scheme]) == expected


@pytest.mark.parametrize(
    ("tags", "scheme", "where", "others"),
    [
        (["O", "I-LOC"], "BIO", "'I-LOC', position 1, after 'O'", "IOB1, IO, IOE1"),
        (["I-LOC", "I-LOC"], "BIO", "'I-LOC', position 0, at the start", "IOB1, IO, IOE1"),
        (["B-X", "I-X"], "BIOES", "'I-X', position 1, at the end", "BIO, IOB2"),
        (["B-X", "E-Y"], "BIOES", "'E-Y', position 1, after 'B-X'", None),
        (["O", "B-X"], "IOB1", "'B-X', position 1, after 'O'", "BIO, IOB2"),
    ],
)
def test_tags_that_do_not_fit_the_scheme_they_are_said_to_have_are_named(tags, scheme, where, others):
    with pytest.warns(UserWarning, match="tags: ") as told:
        found = tm.convert_tags(tags, "BIO", scheme=scheme)
    (warned,) = told
    assert where in str(warned.message)
    assert f"not well formed in {scheme}" in str(warned.message)
    assert ("They are well formed" in str(warned.message)) == (others is not None)
    assert others is None or str(warned.message).endswith(f"in {others}")
    assert warned.filename == __file__
    assert found == tm.convert_tags(tags, "BIO")


def test_what_tags_are_and_what_they_become_cannot_be_exchanged():
    with pytest.raises(
        TypeError, match=r"convert_tags: too many positional arguments; accepted is convert_tags\(tags, to"
    ):
        tm.convert_tags(["I-LOC"], "IOB1", "BIO")
    assert tm.convert_tags([], "BIO", scheme="IOB1") == []
    assert tm.convert_tags(["I-LOC"], to="BIO", scheme="IOB1") == ["B-LOC"]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("scheme", lambda: tm.tag_constraints(["O", "B-X"], "IOB")),
        ("scheme", lambda: tm.tag_spans(["O"], "IOB")),
        ("scheme", lambda: tm.spans_to_tags([], 2, "IOB")),
        ("to", lambda: tm.convert_tags(["O"], "IOB")),
    ],
)
def test_a_scheme_of_two_names_is_told_apart(name, call):
    with pytest.raises(ValueError, match=f"{name}: got 'IOB'; accepted are .*'IOB1', where B- stands only .*'IOB2'"):
        call()
