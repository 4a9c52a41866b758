"""What is said of a call that does not fit: what is missing, what it is, and how the function is called."""

import inspect

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass import bounds

FUNCTIONS = {name: getattr(bounds, name) for name in bounds.__all__ if inspect.isfunction(getattr(bounds, name))}
FUNCTIONS |= {"report": tm.report, "convert_tags": tm.convert_tags, "load_crf": tm.load_crf}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_call_misses_is_named(name):
    function = FUNCTIONS[name]
    must = [one.name for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    with pytest.raises(TypeError, match=rf"^{name}: misses {must[0]} .*; accepted is {name}\({must[0]}") as told:
        function()
    assert all(one in str(told.value) for one in must)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_too_much_and_what_is_unknown_is_refused_by_the_shape_of_the_call(name):
    with pytest.raises(TypeError, match=rf"^{name}: too many positional arguments; accepted is {name}\("):
        FUNCTIONS[name](*range(20))
    with pytest.raises(TypeError, match=rf"^{name}: got an unexpected keyword argument 'colour'; accepted is {name}\("):
        FUNCTIONS[name](colour=1)


def test_an_argument_that_is_missing_is_explained():
    with pytest.raises(
        TypeError,
        match=r"misses delta \(probability of a sample that is an exception\); accepted is "
        r"held_out_error\(errors, rows, delta=...\)$",
    ):
        bounds.held_out_error(3, 100)
    with pytest.raises(TypeError, match=r"boosting_error: misses kind \(what is to be bounded: \"adaboost\", "):
        bounds.boosting_error([0.9, 0.5])


def test_an_error_of_types_inside_the_call_is_its_own():
    with pytest.raises(TypeError, match=r"^model: "):
        tm.report(1, 2)
    with pytest.raises(TypeError, match=r"^tags: got 3"):
        tm.convert_tags(3, "BIO")


VERBS = ["loss", "predict", "predict_proba", "class_scores", "calibrate"]


@pytest.mark.parametrize("structure", ["mask", "lengths"])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("head", [tm.ChainHead(2, 3), tm.MultilabelHead(2, 3), tm.OneVsAllHead(2, 3)], ids=repr)
def test_a_mask_goes_with_the_features(head, verb, structure):
    scores, target = head(torch.ones(2, 4, 2)), torch.zeros(2, 4, dtype=torch.long)
    given = (scores, target) if verb in ("loss", "calibrate") else (scores,)
    goes = r"of a sequence, head\(features, mask=...\) or lengths=... keeps it$"
    with pytest.raises(TypeError, match=rf"^{verb}: got an unexpected keyword argument '{structure}'; .*; {goes}"):
        getattr(head, verb)(*given, **{structure: target})
    with pytest.raises(TypeError, match=rf"^{verb}: .* accepted is {verb}\(scores[^;]*$"):
        getattr(head, verb)(*given, colour=1)


def test_what_a_head_misses_is_explained():
    scorer = tm.LinearScorer(2, 3)
    words = r'^Head: misses loss \(the training criterion, or the name of one, such as "crammer_singer"\), decoder '
    with pytest.raises(TypeError, match=words + r"\(scores to labels\); accepted is Head\(scorer, loss, decoder\)"):
        tm.Head(scorer)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: tm.ExpectedCostDecoder("zero_one")(s["coded"]), r"head\.predict_proba\(scores\)\.log\(\)"),
        (lambda s: tm.ArgmaxDecoder().class_scores(s["coded"]), r"head\.predict_proba\(scores\)\.log\(\)"),
        (lambda s: tm.KBestDecoder(2)(s["plain"]), r"scores\.topk\(k, dim=-1\) has the k best"),
        (lambda s: tm.KBestDecoder(2)(tm.FlatScores(s["plain"])), r"scores\.top\(k\) has the k best"),
        (lambda s: tm.ViterbiDecoder()(s["plain"]), "one label a row is decoded by ArgmaxDecoder"),
        (lambda s: tm.PosteriorDecoder()(s["plain"]), "one label a row is decoded by ArgmaxDecoder"),
    ],
)
def test_scores_of_another_kind_are_told_what_reads_them(call, words):
    plain = torch.zeros(2, 3)
    with pytest.raises(TypeError, match=f"scores: got .*{words}"):
        call({"plain": plain, "coded": tm.CodedScores(plain, tm.codes.one_vs_all(3))})


def test_a_checkpoint_of_more_than_weights_is_told_where_they_are():
    chain = tm.ChainHead(2, 3).scorer.chain.state_dict()
    with pytest.raises(
        ValueError, match=r"no chain under the keys 'state_dict', 'epoch'; .*\['state_dict'\] of it may"
    ):
        tm.load_crf({"state_dict": chain, "epoch": 1})
    with pytest.raises(ValueError, match=r"start and end in it$"):
        tm.load_crf({"weight": torch.zeros(2)})
