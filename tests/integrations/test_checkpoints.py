"""Chains of other libraries: the same likelihood and the same labels as the formulas of these libraries give."""

import itertools
import re

import pytest
import torch
from torch import nn

import torch_multiclass as tm

K, T = 3, 4


def parts():
    g = torch.Generator().manual_seed(0)
    return torch.randn(K, K, generator=g), torch.randn(K, generator=g), torch.randn(K, generator=g)


def same(chain, transitions, start, end):
    torch.testing.assert_close(chain.transitions.detach(), transitions)
    torch.testing.assert_close(chain.start_transitions.detach(), start)
    torch.testing.assert_close(chain.end_transitions.detach(), end)


def test_pytorch_crf_itself():
    torchcrf = pytest.importorskip("torchcrf")

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden2tag = nn.Linear(5, K)
            self.crf = torchcrf.CRF(K, batch_first=True)

    model = Tagger()
    chain = tm.load_crf(model.state_dict())
    emissions, tags = torch.randn(2, T, K), torch.randint(K, (2, T))
    mask = torch.ones(2, T, dtype=torch.bool)
    loss = tm.CRFLoss(reduction="sum")(chain(emissions), tags)
    torch.testing.assert_close(loss, -model.crf(emissions, tags, mask=mask))
    assert chain(emissions).decode().labels.tolist() == model.crf.decode(emissions, mask=mask)


def by_enumeration(emissions, matrix, start, stop, to_from):
    """The best labelling under a matrix that holds start and end, as tutorials sum it."""
    matrix = matrix.t() if to_from else matrix
    tags = [tag for tag in range(K + 2) if tag not in (start, stop)]

    def score(path):
        steps = [start, *(tags[tag] for tag in path), stop]
        moves = sum(matrix[a, b] for a, b in itertools.pairwise(steps))
        return moves + sum(emissions[t, tag] for t, tag in enumerate(path))

    return max(itertools.product(range(K), repeat=T), key=score)


@pytest.mark.parametrize("to_from", [True, False], ids=["to_from", "from_to"])
@pytest.mark.parametrize("ends", [(K, K + 1), (0, 1), (1, 4)])
def test_start_and_end_in_the_matrix(to_from, ends):
    start, stop = ends
    g = torch.Generator().manual_seed(3)
    matrix = torch.randn(K + 2, K + 2, generator=g)  # [from, to]
    matrix[:, start] = matrix[stop] = -10000.0
    matrix = matrix.t() if to_from else matrix
    chain = tm.load_crf({"transitions": matrix, "word_embeds.weight": torch.randn(4, 4)})
    emissions = torch.randn(T, K, generator=g)
    assert tuple(chain(emissions).decode().labels.tolist()) == by_enumeration(emissions, matrix, *ends, to_from)


def test_a_start_that_stands_after_the_end():
    matrix = torch.zeros(K + 2, K + 2)
    matrix[0, 1], matrix[:, 4], matrix[3] = 2.0, -10000.0, -10000.0
    assert tm.load_crf({"transitions": matrix}, layout="from_to").transitions[0, 1] == 2.0
    assert tm.load_crf({"transitions": matrix}).transitions[1, 0] == 2.0  # read as [to, from], start before end


def test_names_of_torch_crf_and_a_layout_that_is_said():
    transitions, start, end = parts()
    state = {"crf.trans_matrix": transitions, "crf.start_trans": start, "crf.end_trans": end}
    same(tm.load_crf(state), transitions, start, end)
    same(tm.load_crf(state, layout="to_from"), transitions.t(), start, end)


def test_what_allennlp_forbids():
    transitions, start, end = parts()
    mask = torch.ones(K + 2, K + 2)
    mask[0, 1] = mask[K, 2] = mask[2, K + 1] = 0
    state = {"transitions": transitions, "start_transitions": start, "end_transitions": end, "_constraint_mask": mask}
    chain = tm.load_crf(state)
    same(chain, transitions, start, end)
    scores = chain(torch.zeros(1, T, K))
    assert scores.transitions[0, 1] == scores.start[2] == scores.end[2] == -torch.inf
    mask.fill_(1)
    assert not tm.load_crf(state).constrained


def test_it_stands_in_a_head():
    transitions, start, end = parts()
    head = tm.ChainHead(5, K)
    head.scorer.chain = tm.load_crf({"transitions": transitions, "start_transitions": start, "end_transitions": end})
    scores = head(torch.randn(2, T, 5))
    head.loss(scores, torch.zeros(2, T, dtype=torch.long)).backward()
    assert head.scorer.chain.transitions.grad.abs().sum() > 0


def test_two_chains_are_told_apart_by_their_prefix():
    transitions, start, end = parts()
    names = ("transitions", "start_transitions", "end_transitions")
    state = {f"{p}.{name}": part * (1 + (p == "b")) for p in "ab" for name, part in zip(names, parts(), strict=True)}
    same(tm.load_crf(state, prefix="b."), 2 * transitions, 2 * start, 2 * end)
    with pytest.raises(ValueError, match=r"several chains, under the prefixes 'a\.', 'b\.'"):
        tm.load_crf(state)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"lstm.weight": torch.zeros(2)}, "no chain under the keys 'lstm.weight'"),
        ({}, "no chain under the keys"),
        ({"transitions": torch.zeros(5, 5)}, "state_dict['transitions']: has 0 rows and 0 columns"),
        ({"crf.transitions": torch.zeros(5, 4)}, "state_dict['crf.transitions']: got shape (5, 4)"),
        (
            {"crf.transitions": torch.zeros(3, 3), "crf.start_transitions": torch.zeros(3)},
            "state_dict: has 'crf.start_transitions' and no 'crf.end_transitions'; accepted are both, or neither",
        ),
        (
            {"transitions": torch.zeros(3, 3), "start_transitions": torch.zeros(2), "end_transitions": torch.zeros(3)},
            "state_dict['start_transitions']: got shape (2,)",
        ),
        (
            {
                "transitions": torch.zeros(3, 3),
                "start_transitions": torch.zeros(3),
                "end_transitions": torch.zeros(3),
                "_constraint_mask": torch.ones(3, 3),
            },
            "state_dict['_constraint_mask']: got shape (3, 3)",
        ),
    ],
)
def test_errors_name_the_keys(state, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        tm.load_crf(state)


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="state_dict: got Tensor"):
        tm.load_crf(torch.zeros(3, 3))
    with pytest.raises(TypeError, match="state_dict: got dict; accepted is what"):
        tm.load_crf({1: torch.zeros(2)})
    with pytest.raises(ValueError, match="layout"):
        tm.load_crf({}, layout="both")
    for prefix in (3, b"crf.", torch.zeros(2)):
        with pytest.raises(TypeError, match=r"prefix: got .*; accepted are a string and None"):
            tm.load_crf({"transitions": torch.zeros(5, 5)}, prefix=prefix)
    with pytest.raises(TypeError, match=r"state_dict\['transitions'\]"):
        tm.load_crf({"transitions": torch.zeros(5, 5, dtype=torch.long)})


def test_constraints_are_given_beside_those_of_the_checkpoint():
    transitions, start, end = parts()
    theirs = {"transitions": transitions, "start_transitions": start, "end_transitions": end}
    allowed = tm.tag_constraints(["O", "B-X", "I-X"])
    same(tm.load_crf(theirs, constraints=allowed), transitions, start, end)
    mask = torch.ones(K + 2, K + 2)
    mask[1, 1] = 0  # B after B
    for given, banned in ((allowed, {(0, 2), (1, 1)}), (None, {(1, 1)})):
        chain = tm.load_crf(theirs | {"_constraint_mask": mask}, constraints=given)
        scores = chain(torch.zeros(2, K))
        assert {tuple(pair) for pair in (scores.transitions == -torch.inf).nonzero().tolist()} == banned
        assert bool(scores.start[2] == -torch.inf) == (given is not None)
    with pytest.raises(ValueError, match=re.escape("constraints.transitions: got shape (2, 2); accepted is (3, 3)")):
        tm.load_crf(theirs, constraints=tm.tag_constraints(["O", "B-X"]))
    with pytest.raises(TypeError, match="constraints: got list"):
        tm.load_crf(theirs, constraints=[])
