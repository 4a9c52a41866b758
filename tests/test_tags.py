"""Constraints of tag schemes against regular expressions of whole spans."""

from __future__ import annotations

import itertools
import re

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.metrics import SpanF1


def spans_are_legal(scheme: str, tags: list[str]) -> bool:
    """Whether a regular expression of whole spans matches; types X and Y."""
    line = "".join(tag.replace("-", "") + " " for tag in tags)
    span = {
        "BIO": lambda t: f"B{t} (I{t} )*",
        "BIOES": lambda t: f"(S{t} |B{t} (I{t} )*E{t} )",
    }
    if scheme in span:
        return re.fullmatch(f"(O |{span[scheme]('X')}|{span[scheme]('Y')})*", line) is not None
    # IOB1: B only right after a span of the same type
    return all(
        tag[0] != "B" or (n > 0 and tags[n - 1] != "O" and tags[n - 1][2:] == tag[2:]) for n, tag in enumerate(tags)
    )


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "IOB1"])
def test_constraints_allow_exactly_the_legal_sequences(scheme):
    prefixes = "BIES" if scheme == "BIOES" else "BI"
    tags = ["O", *(f"{p}-{t}" for t in "XY" for p in prefixes)]
    allowed = tm.tag_constraints(tags, scheme)
    for n in range(1, 5 if scheme != "BIOES" else 4):
        every = torch.tensor(list(itertools.product(range(len(tags)), repeat=n)))
        scores = tm.ChainScores(torch.zeros(n, len(tags)), allowed.transitions, start=allowed.start, end=allowed.end)
        possible = scores.score(every) == 0
        expected = [spans_are_legal(scheme, [tags[y] for y in row]) for row in every.tolist()]
        assert possible.tolist() == expected


def test_bad_tags_are_named():
    with pytest.raises(ValueError, match=r"tags: 'X-PER' is not a BIO tag; accepted are 'O', 'B-\.\.\.', 'I-\.\.\.'"):
        tm.tag_constraints(["O", "X-PER"])
    with pytest.raises(ValueError, match="tags: 'O' is given twice"):
        tm.tag_constraints(["O", "O"])
    with pytest.raises(ValueError, match="scheme: got 'BMES'; accepted are 'BIO', 'IOB1', 'BIOES'"):
        tm.tag_constraints(["O"], "BMES")


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
