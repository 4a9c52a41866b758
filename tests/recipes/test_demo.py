"""What the demo claims, on small sizes: the figures behind it, the words, and the pictures."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("lightning")
pytest.importorskip("sklearn")
pytest.importorskip("jsonargparse")
pytest.importorskip("matplotlib")

from recipes import classify, load, report, results, start
from recipes.data import conllu
from recipes.demo import codes, costs, heads, machine, parts, regions, sequences, show
from recipes.demo.tagger import Corpus

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore::jsonargparse._deprecated.JsonargparseDeprecationWarning"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def said(capsys):
    """The lines so far, each within 80 columns, as one text."""

    def read():
        shown = capsys.readouterr()
        lines = shown.out.splitlines()
        assert shown.err == ""
        assert max(map(len, lines)) <= 80
        return " ".join(" ".join(lines).split())

    return read


def drawn(folder, *names):
    pictures = {path.stem: path.read_bytes() for path in (folder / "demo").glob("*.png")}
    assert set(pictures) == set(names)
    assert all(data.startswith(b"\x89PNG") and len(data) > 10_000 for data in pictures.values())


@pytest.mark.parametrize(
    ("shift", "spread", "word"),
    [(-0.5, 0.1, ""), (0.5, 0.1, " (worse)"), (-0.05, 1.0, " (level)"), (0.0, 0.0, " (level)")],
)
def test_only_a_difference_beyond_the_noise_is_claimed(shift, spread, word):
    theirs = torch.randn(100, generator=torch.Generator().manual_seed(0))
    noise = torch.randn(100, generator=torch.Generator().manual_seed(1))
    assert show.noted(theirs + shift + spread * (noise - noise.mean()), theirs) == word


def test_claims_keep_to_the_width_and_to_their_units(said):
    show.claim("topic", " ".join([f"about {show.percent(0.123)} of them"] * 9))
    assert "12.3 %" in said()


def test_where_no_bar_is_seen_the_topic_is_said_before_its_claim(capsys):
    """And once."""
    with show.working("topic", 3):
        assert capsys.readouterr().out == "topic      "
    show.claim("topic", "is so")
    show.claim("", "and so")
    show.claim("other", "as well")
    assert capsys.readouterr().out == f"is so\n{'':11}and so\nother      as well\n"


def test_too_high_costs_five_times():
    assert costs.COST[3, 5] == 10
    assert costs.COST[5, 3] == 2
    assert (costs.COST.diagonal() == 0).all()


def test_costs_in_the_loss_lower_what_is_paid(folder, monkeypatch, said):
    monkeypatch.setattr(costs, "TRAIN", 300)
    monkeypatch.setattr(costs, "DRAWS", 2)
    paid, counts = costs.measured()
    assert paid[costs.TRAINED].mean() < paid["soft-max"].mean()
    for name, table in counts.items():
        assert table.sum() == 2 * (1797 - 300)
        assert float((table * costs.COST).sum() / table.sum()) == pytest.approx(float(paid[name].mean()))
    monkeypatch.setattr(costs, "measured", lambda: (paid, counts))
    costs.main()
    text = said()
    for each in paid.values():
        assert f"{float(each.mean()):.2f}" in text
    for table in counts.values():
        assert re.search(rf" {int(table.sum() - table.trace())}[ ,]", text)
    assert "of 2,994 in 2 draws of 300 training rows" in text
    drawn(folder, "costs")


def test_codes_read_by_their_loss(folder, monkeypatch, said):
    monkeypatch.setattr(codes, "ROUNDS", 3)
    codes.main()
    text = said()
    assert "3 rounds of boosted stumps" in text
    assert [int(many) for many in re.findall(r"\((\d+) columns\)", text)][::2] == [10, 45]
    signs, loss, random_code, pairs = (float(share) for share in re.findall(r"([\d.]+) %", text))
    assert signs > loss > pairs
    assert random_code > 0
    drawn(folder, "codes")


def test_the_machine_proves_itself_and_the_descent_is_above(folder, monkeypatch, said):
    monkeypatch.setattr(machine, "STEPS", 20)
    machine.main()
    text = said()
    assert float(re.search(r"within (\S+) of", text)[1]) <= 1e-6
    assert float(re.search(r"end ([\d.e+]+) % above", text)[1]) > 10
    misread, rows, second = map(int, re.search(r"misreads (\d+) of (\d+) digits; of (\d+)", text).groups())
    assert 0 < second <= misread < 0.1 * rows
    drawn(folder, "gap", "misread")


def test_the_descent_is_of_the_same_objective():
    """From the weights 0, where each row loses 1; and it falls."""
    x, y = torch.eye(10), torch.arange(10)
    steps = machine.descent(x, y, 0.0)
    assert steps[0].primal == 10
    assert steps[-1].primal < 10


def test_regions_of_a_class_in_the_middle(folder, said):
    regions.main()
    apart, least, most = (float(share) for share in re.findall(r"([\d.]+) %", said()))
    assert apart > most >= least
    drawn(folder, "regions")


@pytest.fixture
def corpus(folder):
    """Sentences that go round three tags; half of the words do not show theirs, but their neighbours do."""
    follows, pieces = {"D": "N", "N": "V", "V": "D"}, []
    for seed, size in enumerate((1000, 80, 80)):
        rng, text = random.Random(seed), ""
        for _ in range(size):
            tag = rng.choice("DNV")
            for n in range(1, rng.randrange(5, 10)):
                word = rng.choice(["ab", "cd"]) + (tag.lower() if rng.random() < 0.5 else "x")
                text += f"{n}\t{word}\t_\t{tag}\t_\t_\t_\t_\t_\t_\n"
                tag = follows[tag]
            text += "\n"
        (folder / f"{seed}.conllu").write_text(text, encoding="utf-8")
        pieces.append(conllu.read(folder / f"{seed}.conllu"))
    return Corpus(*pieces)


@pytest.mark.slow
def test_a_loss_of_the_sequence_gets_more_sentences_right(corpus, folder, monkeypatch, said):
    monkeypatch.setattr(sequences, "corpus", lambda: corpus)
    monkeypatch.setattr(sequences, "EPOCHS", 8)
    sequences.main()
    text = said()
    plain, crf = (float(share) for share in re.search(r"token ([\d.]+) %, CRF ([\d.]+) %", text).groups())
    assert crf > plain + 30
    before, after = (
        float(share) for share in re.search(r"error of ([\d.]+) %, .* sentences ([\d.]+) %, ", text).groups()
    )
    worse, better = (float(nats) for nats in re.search(r"([\d.]+) to ([\d.]+) nats", text).groups())
    assert better < worse or after < before
    drawn(folder, "calibration", "sentence", "transitions")
    assert f"after {sequences.EPOCHS} passes" in text
    assert text.count("too sure") + text.count("not sure enough") == 2
    new = [path.name for path in (folder / "demo").rglob("best.ckpt")]
    assert new == ["best.ckpt"]
    network = load("demo/tagger").model.network
    assert type(network.encoder).__name__ == "SmallEncoder"
    assert report.main(["demo/tagger", "--data=2.conllu", "--held_out=true", "--output=out"]) == "out"
    found = json.loads(Path("out/report.json").read_text())["error"]["sequences"]
    assert 1 - found["error"] == pytest.approx(float(re.findall(r"CRF ([\d.]+) %", text)[1]) / 100, abs=6e-4)


@pytest.mark.slow
def test_heads_on_plain_digits(folder, monkeypatch, said):
    short = ("--trainer.max_epochs=1", "--trainer.limit_train_batches=2")
    kept = {head: results.DIGITS[head] for head in ("soft-max", "one-versus-one", "error-correcting")}
    monkeypatch.setattr(heads, "DIGITS", kept)
    monkeypatch.setattr(heads, "train", lambda config: classify.train(config, *short))
    heads.main()
    assert "the 2 other heads in" in said()
    drawn(folder, "margins")


def test_parts_by_name(monkeypatch, capsys):
    called = []
    monkeypatch.setattr(parts, "PARTS", {name: lambda name=name: called.append(name) for name in "abc"})
    parts.main(["c", "a"])
    assert called == ["c", "a"]
    assert len(capsys.readouterr().out.splitlines()) == 3
    with pytest.raises(SystemExit, match="there is no part d; accepted are a, b, c"):
        parts.main(["a", "d"])
    assert called == ["c", "a"]
    with pytest.raises(SystemExit, match="0"):
        parts.main(["--help"])
    assert "usage" in capsys.readouterr().out


def test_pictures_go_where_they_are_asked_for(folder, monkeypatch):
    monkeypatch.setattr(codes, "ROUNDS", 1)
    parts.main(["codes", "--output", "here"])
    show.keep_in("demo")
    assert [path.name for path in (folder / "here").iterdir()] == ["codes.png"]
    assert not (folder / "demo").exists()


def test_nothing_slow_is_imported_before_the_keyboard_is_guarded():
    script = "import sys, recipes.demo; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_command_knows_its_parts():
    with pytest.raises(SystemExit, match="there is no part nope; accepted are costs, codes,"):
        start.imported(f"recipes.{start.WITHIN['demo']}").main(["nope"])
