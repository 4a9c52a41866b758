"""What a report is written as, what it refuses, and that every head has one."""

import builtins
import html.parser
import json
import math

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.reports import HeadReport

NAMES = ["<b>cat</b>", "dog | _hen_", "c"]


def rows(count=30):
    g = torch.Generator().manual_seed(0)
    return torch.randn(count, 4, generator=g), torch.arange(count) % 3


def found(**options):
    return tm.report(
        tm.ECOCHead(4, code=tm.codes.dense_random(3, columns=3), loss="hinge"), rows(), names=NAMES, **options
    )


def heads():
    """One of each kind: the head, its target and its structure."""
    g = torch.Generator().manual_seed(0)
    x, y = rows()
    steps, tags = torch.randn(6, 5, 4, generator=g), torch.randint(3, (6, 5), generator=g)
    signs = torch.where(torch.randn(30, 3, generator=g) > 0, 1, -1)
    kernel = tm.kernels.Gaussian(0.5)
    flat = {
        "MulticlassHead": tm.MulticlassHead(4, 3),
        "OneVsAllHead": tm.OneVsAllHead(4, 3),
        "OneVsOneHead": tm.OneVsOneHead(4, 3),
        "tournament": tm.OneVsOneHead(4, 3, decoder=tm.TournamentDecoder()),
        "hamming": tm.ECOCHead(4, code=tm.codes.complete(3), loss="hinge", decoder=tm.HammingDecoder()),
        "ECOCHead": tm.ECOCHead(4, code=tm.codes.complete(3), loss="exponential"),
        "ContinuousCodeHead": tm.ContinuousCodeHead(4, code=tm.codes.complete(3)),
        "KernelScorer": tm.KernelScorer(x, 3, kernel),
        "NystromScorer": tm.NystromScorer(tm.NystromFeatures(x[:8], kernel), 3),
        "RandomFourierScorer": tm.RandomFourierScorer(4, 3, 16, generator=g),
        "kernel head": tm.Head(tm.KernelScorer(x, 3, kernel), "crammer_singer", tm.ArgmaxDecoder()),
        "coded kernel": tm.OneVsAllHead(tm.KernelScorer(x, 3, kernel), 3),
        "DualSVM": tm.solvers.DualSVM(kernel=kernel).fit(x, y),
        "Perceptron": tm.solvers.Perceptron(max_passes=50).fit(x[:3], y[:3]),
        "AdaBoostMH": tm.solvers.AdaBoostMH(rounds=3).fit(x, y),
        "AdaBoostMR": tm.solvers.AdaBoostMR(rounds=3).fit(x, y),
        "AdaBoostMO": tm.solvers.AdaBoostMO(tm.codes.one_vs_all(3), rounds=3).fit(x, y),
        "DecisionTree": tm.solvers.DecisionTree().fit(x, y),
        "RandomForest": tm.solvers.RandomForest(3).fit(x, y),
        "CodedReduction": tm.solvers.CodedReduction(tm.codes.one_vs_one(3), tm.solvers.BinaryLogistic()).fit(x, y),
        "reduction of trees": tm.solvers.CodedReduction(
            tm.codes.one_vs_one(3), tm.solvers.DecisionTree(max_leaves=3)
        ).fit(x, y),
    }
    found = {name: (head, (x, y)) for name, head in flat.items()}
    found["MultilabelHead"] = tm.MultilabelHead(4, 3), (x, signs)
    for kind in (tm.ChainHead, tm.SecondOrderHead):
        found[kind.__name__] = kind(4, 3), (steps, tags)
    found["LabelTreeHead"] = tm.LabelTreeHead(4, 3), (steps, tags, {"parents": torch.tensor([-1, 0, 0, 1, 1])})
    found["SegmentHead"] = tm.SegmentHead(4, 3, 2), (steps, torch.tensor([[0, 3, 0, 3, 1]] * 6))
    found["chain of kernels"] = tm.ChainScorer(tm.KernelScorer(x, 3, kernel), 3), (steps, tags)
    return found


HEADS = [
    "MulticlassHead", "OneVsAllHead", "OneVsOneHead", "tournament", "hamming", "ECOCHead", "ContinuousCodeHead",
    "KernelScorer", "NystromScorer", "RandomFourierScorer", "kernel head", "coded kernel", "DualSVM", "Perceptron",
    "AdaBoostMH", "AdaBoostMR", "AdaBoostMO", "DecisionTree", "RandomForest", "CodedReduction", "reduction of trees",
    "MultilabelHead", "ChainHead", "SecondOrderHead", "LabelTreeHead", "SegmentHead", "chain of kernels",
]  # fmt: skip


@pytest.fixture(scope="module")
def made():
    return heads()


def close(one, other):
    """The same dictionaries, numbers to rounding."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-6)
    return one == other


@pytest.mark.parametrize("name", HEADS)
def test_every_head_has_one_and_batches_change_nothing(made, name):
    head, data = made[name]
    whole = tm.report(head, data, radius=20.0)
    parts = tm.report(head, data, radius=20.0, batch_size=4)
    assert close(whole.as_dict(), parts.as_dict())
    json.dumps(whole.as_dict(), allow_nan=False)
    assert whole.html(pictures=False)
    assert whole.markdown()
    assert isinstance(whole, HeadReport)


def test_all_are_tried(made):
    assert set(made) == set(HEADS)
    public = {name for name in tm.__all__ if name.endswith("Head")} - {"Head"}
    assert public <= set(HEADS)


LIKE_ANOTHER = {
    "tournament", "hamming", "NystromScorer", "RandomFourierScorer", "coded kernel", "AdaBoostMR", "reduction of trees",
}  # fmt: skip
"""Whose pictures are those of another, of other numbers."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.exhaustive) if one in LIKE_ANOTHER else one for one in HEADS]
)
def test_every_picture_is_drawn(made, name, tmp_path):
    pytest.importorskip("matplotlib")
    head, data = made[name]
    report = tm.report(head, data)
    folder = report.save(tmp_path / "out")
    drawn = {file.stem for file in (folder / "pictures").glob("*.png")}
    assert drawn == set(report.pictures)
    text = (folder / "report.md").read_text()
    assert all(f"](pictures/{name}.png)" in text for name in drawn)
    assert json.loads((folder / "report.json").read_text()) == report.as_dict()
    assert (folder / "report.html").read_text().count("data:image/png;base64,") == len(drawn)


class Reader(html.parser.HTMLParser):
    """Whether what is opened is closed, and what is linked is there."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.addresses = [], set(), set(), []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.ids.add(attrs.get("id"))
        if tag == "a":
            self.links.add(attrs["href"].removeprefix("#"))
        if tag == "img":
            self.addresses.append(attrs["src"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_stands_alone():
    pytest.importorskip("matplotlib")
    page = found().html()
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.links <= reader.ids
    assert reader.addresses
    assert all(address.startswith("data:image/png;base64,") for address in reader.addresses)
    assert "<b>cat</b>" not in page
    assert "&lt;b&gt;cat&lt;/b&gt;" in page
    assert "http" not in page


def test_markdown_is_escaped():
    report = found()
    text = report.markdown()
    assert "\\<b\\>cat" in text
    assert "dog \\| \\_hen\\_" in text
    assert text.startswith("# ECOCHead: 30 labelled rows")
    assert "![" not in text
    widths = {}
    for line in text.splitlines():
        if line.startswith("|"):
            cells = line.replace("\\|", "").count("|")
            assert cells == widths.setdefault("now", cells), line
        else:
            widths.clear()
    assert str(report) == text


def test_saved_by_the_suffix(tmp_path):
    pytest.importorskip("matplotlib")
    report = found()
    for name, content in (("a.md", report.markdown()), ("b.json", None), ("c.html", report.html())):
        path = report.save(tmp_path / "new" / name)
        assert path.read_text() == content or json.loads(path.read_text()) == report.as_dict()
    with pytest.raises(ValueError, match=r"path: got '.*a\.pdf'; accepted are \.html, \.md and \.json, or a folder"):
        report.save(tmp_path / "a.pdf")
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["a.md", "b.json", "c.html"]


def test_without_matplotlib(monkeypatch, tmp_path):
    report = found()
    genuine = builtins.__import__

    def missing(module, *rest, **more):
        if module.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return genuine(module, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    for write in (report.html, lambda: report.save(tmp_path / "a.html"), lambda: report.save(tmp_path / "folder")):
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'torch_multiclass\[plots\]'"):
            write()
    assert not list(tmp_path.rglob("*.html"))
    assert "<img" not in report.html(pictures=False)
    assert report._repr_html_() == report.html(pictures=False)
    report.save(tmp_path / "a.md")


def test_the_head_stays_as_it_was():
    head = tm.MulticlassHead(4, 3)
    backbone = torch.nn.Sequential(torch.nn.Dropout(0.9), torch.nn.Identity())
    backbone[1].eval()
    x, y = rows()
    before = x.clone()
    one, other = (tm.report(head, (x, y), backbone=backbone).as_dict() for _ in range(2))
    assert one == other  # without dropout
    assert [part.training for part in (*backbone, head)] == [True, False, True]
    assert torch.equal(x, before)
    assert all(parameter.grad is None for parameter in head.parameters())


def test_a_batch_after_the_other_from_anything_iterable():
    x, y = rows()
    head = tm.MulticlassHead(4, 3)
    whole = tm.report(head, (x, y)).as_dict()
    assert close(tm.report(head, ((x[i : i + 7], y[i : i + 7]) for i in range(0, 30, 7))).as_dict(), whole)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=4)
    assert close(tm.report(head, loader).as_dict(), whole)


X, Y = rows()
HEAD = tm.MulticlassHead(4, 3)
CHAIN = tm.ChainScores(torch.zeros(1, 2, 3), torch.zeros(3, 3))
CHAINED = tm.ChainHead(4, 3, loss="crf")
CODED = tm.CodedScorer(4, tm.codes.one_vs_all(3))


class Wrong(tm.ArgmaxDecoder):
    """What a function makes of the labels."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def forward(self, scores):
        return self.change(scores.decode().labels if isinstance(scores, tm.ChainScores) else super().forward(scores))


@pytest.mark.parametrize(
    ("model", "data", "options", "message"),
    [
        (torch.nn.Linear(4, 3), (X, Y), {}, "model: got Linear"),
        (HEAD, [], {}, "data: holds no example"),
        (HEAD, (X[:0], Y[:0]), {}, "data: holds no example"),
        (CHAINED, (X[None], Y[None], {"lengths": torch.tensor([0])}), {}, "or no position that counts by mask"),
        (CHAINED, (X[None], Y[None], {"mask": Y[None] < 0}), {}, "no position that counts by mask or lengths"),
        (HEAD, (X, torch.full_like(Y, -100)), {}, "target: holds no label, 30 times -100"),
        (HEAD, (X, Y + 1), {}, r"target: label 3 is outside 0\.\.2 \(3 classes\)"),
        (HEAD, (X, Y - 1), {}, r"target: label -1 is outside 0\.\.2"),
        (HEAD, (X, Y.float()), {}, r"target: got dtype torch\.float32"),
        (HEAD, (X, Y[:5]), {}, r"target: got shape \(5,\)"),
        (HEAD, (X[:, :3], Y), {}, r"features: got shape \(30, 3\)"),
        (HEAD, (X * math.nan, Y), {}, "scores: hold NaN in 30 of 30 labelled rows"),
        (HEAD, X, {}, "data: got tensor"),
        (HEAD, "data.npz", {}, "data: got 'data.npz'"),
        (HEAD, [X], {}, "data: got a batch"),
        (HEAD, (X, Y, [1]), {}, r"data: got \[1\] as structure"),
        (HEAD, [(X, Y.tolist())], {}, "data: got .* as a target"),
        (CHAINED, (X[None], Y[None], {"length": Y[:1]}), {}, "data: got an unexpected .* 'length'; .* lengths"),
        (HEAD, (X, Y), {"decoder": Wrong(lambda y: y[:, None])}, r"decoder: gives labels of shape \(30, 1\); .*\(30,"),
        (HEAD, (X, Y), {"decoder": Wrong(torch.Tensor.tolist)}, "decoder: gives list; accepted are labels of shape"),
        (CHAINED, (X[None], Y[None]), {"decoder": Wrong(lambda y: y[0])}, r"decoder: gives labels of shape \(30,\)"),
        (HEAD, (X, Y), {"names": ["a", "b"]}, "names: got 2; accepted are 3"),
        (HEAD, (X, Y), {"delta": 0}, "delta: got 0"),
        (HEAD, (X, Y), {"delta": 1.0}, "delta: got 1"),
        (HEAD, (X, Y), {"margin": 0}, "margin: got 0"),
        (HEAD, (X, Y), {"radius": -1.0}, "radius: got -1"),
        (HEAD, (X, Y), {"norm": math.inf}, "norm: got inf"),
        (HEAD, (X, Y), {"held_out": 1}, "held_out: got 1"),
        (HEAD, (X, Y), {"batch_size": 0}, "batch_size: got 0"),
        (HEAD, (X, Y), {"decoder": "argmax"}, "decoder: got 'argmax'"),
        (HEAD, (X, Y), {"backbone": 3}, "backbone: got 3"),
        (HEAD, (X, Y), {"cost": [[0, 1], [1, 0]]}, "cost"),
        (CODED, (X, Y), {}, "decoder: got None for a scorer of coded margins"),
        (tm.MultilabelHead(4, 3), (X, Y), {}, r"target: got shape \(30,\)"),
        (tm.MultilabelHead(4, 3), (X, torch.zeros(30, 3).long()), {}, "target: holds 0; accepted are -1, "),
        (HEAD, [(X, Y), (CHAIN, torch.zeros(1, 2).long())], {}, "scores: got ChainScores"),
    ],
)  # fmt: skip
def test_bad_input(model, data, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tm.report(model, data, **options)


def test_gaps_are_stated_everywhere():
    report = tm.report(HEAD, (X, Y % 2))
    assert report.gaps["errors of labels without an example"] == "2."
    assert report.as_dict()["gaps"] == report.gaps
    for text in (report.markdown(), report.html(pictures=False)):
        assert "Not said: errors of labels without an example" in text
        assert "Not said: margin bound, uniform in the margin" in text


def test_a_new_user_reads_what_numbers_are_of():
    report = found()
    text = report.markdown()
    assert "a score is minus the distance to the row of the code" in text
    assert "every mistake costs 1, so that this is the error" in text
    assert "| column | wrong | rows asked | asks whether it is one of | or one of |" in text
    assert "a margin of 0 counts as wrong" in text
    table = next(one for part in report.sections if part.key == "code" for one in part.blocks if hasattr(one, "rows"))
    numbered = [*table.rows, ["3", "0.50 %", "2", "0, 1", "2"]]
    assert type(table)(table.header, numbered).numeric()[:4] == [False, True, True, False]
    assert "0 at best" in text
    wrong = report.as_dict()["bounds"]["bounds"][0]["value"]
    assert f"| error of new rows | {100 * wrong:.2f} % |" in text
    assert "row distance" in text  # and not by the names of arguments
    assert "row_distance" not in text.replace("\\", "")
    x, y = rows()
    costly = tm.report(tm.MulticlassHead(4, 3), (x, y), cost=[[0, 2, 2], [1, 0, 1], [1, 1, 0]]).markdown()
    assert "by the costs of Matrix" in costly


def test_sequences_are_what_their_bound_is_of():
    head = tm.ChainHead(4, 3, loss="crf")
    chained = tm.report(head, (torch.randn(6, 5, 4), torch.randint(3, (6, 5)))).as_dict()["bounds"]["bounds"][0]
    assert chained["of"] == "error of new sequences"
    assert chained["assumptions"][0] == "the sequences are drawn independently"
