"""Every encoder of the recipes gives a row the same features whatever stands beside it in the batch."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from recipes import load, start
from recipes.data.conllu import read
from recipes.data.treebank import Batch, TaggedSentences
from recipes.data.vocabulary import FEATURES, PADDING, Vocabulary
from recipes.models import MLP, ConvNet
from recipes.models.encoders import ConvolutionEncoder
from recipes.models.fitting import fitting
from recipes.models.tagger import TaggingNetwork

SENTENCES = ["a", "a cat sat", "the constitutionality of cats", "electroencephalographically a", "sat cat a the"]


def trained(network, value, steps=3):
    """The network after a few steps, in evaluation: running averages and embeddings are no longer as they began."""
    optimizer = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        value(network).backward()
        optimizer.step()
    return network.eval()


@pytest.mark.parametrize(
    ("backbone", "shape"), [(ConvNet, (1, 8, 8)), (ConvNet, (3, 7, 5)), (MLP, (6,)), (MLP, (2, 3))]
)
def test_a_row_of_numbers(backbone, shape):
    rows = torch.randn(9, *shape)
    network = trained(backbone(shape), lambda network: network(rows).square().mean())
    together = network(rows)
    for i in range(len(rows)):
        torch.testing.assert_close(network(rows[i : i + 1])[0], together[i], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(network(torch.cat([1e3 * rows[1:], rows[:1]]))[-1], together[0], rtol=1e-5, atol=1e-5)


@pytest.fixture
def known(tmp_path):
    """The sentences, and the vocabulary that they teach."""
    text = ""
    for sentence in SENTENCES:
        words = enumerate(sentence.split(), 1)
        text += "".join(f"{i}\t{word}\t_\t{word[0].upper()}" + "\t_" * 6 + "\n" for i, word in words) + "\n"
    (tmp_path / "a.conllu").write_text(text, encoding="utf-8")
    known = read(tmp_path / "a.conllu")
    vocabulary = Vocabulary.learn(known, "UPOS", least=1)
    return TaggedSentences(known, vocabulary), vocabulary


@pytest.fixture
def tagging(known):
    """The sentences, and a network that knows their words."""
    sentences, vocabulary = known
    return sentences, TaggingNetwork(vocabulary, None, True, hidden=8, characters=8)


def emissions(network, sentences, rows):
    """The emissions of each sentence of a batch, by its place in the file."""
    batch = sentences[rows]
    scores = network(batch).emissions
    return {int(i): scores[n, :length] for n, (i, length) in enumerate(zip(batch.index, batch.lengths, strict=True))}


def assert_rows_are_their_own(network, sentences):
    together = emissions(network, sentences, list(range(len(SENTENCES))))
    for i, expected in together.items():
        for beside in ([], *([j] for j in together if j != i)):
            torch.testing.assert_close(emissions(network, sentences, [i, *beside])[i], expected, rtol=1e-5, atol=1e-6)


def test_a_sentence(tagging):
    """Words of other lengths beside it, and longer sentences, change nothing, before training and after."""
    sentences, network = tagging
    assert_rows_are_their_own(network.eval(), sentences)
    batch = sentences[list(range(len(SENTENCES)))]
    trained(network.train(), lambda network: network(batch).log_partition().sum())
    assert_rows_are_their_own(network, sentences)
    assert not network.encoder.words.characters.weight[PADDING].any()


def test_a_checkpoint_with_a_filled_padding_row(tagging):
    sentences, network = tagging
    with torch.no_grad():
        network.encoder.words.characters.weight[PADDING] = 1.0
    assert_rows_are_their_own(network.eval(), sentences)


# ---------------------------------------------------------------------- of the user's own
PAGE = (Path(__file__).parents[2] / "recipes" / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def my_module(tmp_path, monkeypatch):
    """The file that the page tells to write, in the working folder."""
    (code,) = (block.split("```")[0] for block in PAGE.split("```python\n") if "class MyEncoder" in block)
    (tmp_path / "my_module.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_module", raising=False)
    return __import__("my_module")


@pytest.mark.parametrize("mine", [True, False])
def test_an_encoder_keeps_a_sentence_to_itself(known, my_module, mine):
    sentences, vocabulary = known
    encoder = my_module.MyEncoder if mine else ConvolutionEncoder
    network = TaggingNetwork(vocabulary, None, True, encoder)
    assert_rows_are_their_own(network.eval(), sentences)
    assert network(sentences[[]]).emissions.shape == (0, 0, len(vocabulary.tags))


def test_the_page_names_all_that_an_encoder_gets():
    table = PAGE.split("**An encoder of your own**")[1].split("## ")[0]
    for name in (*Batch._fields, "word", "form", "shape", "prefix1", "prefix3", "suffix1", "suffix4"):
        assert f"`{name}`" in table
    assert f"(U, {len(FEATURES)})" in table
    assert f"padded with {PADDING}" in table


def gives(features):
    class Encoder(nn.Module):
        num_features = 4

        def __init__(self, vocabulary):
            super().__init__()

        def forward(self, batch):
            return features(batch)

    return Encoder


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (
            nn.Transformer,
            r"encoder: Transformer does not fit \(.*\); accepted are BiLSTMEncoder, ConvolutionEncoder or ",
        ),
        (
            nn.Identity,
            r"encoder: Identity does not fit \(it has no num_features that is a whole number\); accepted are",
        ),
        (
            gives(lambda batch: batch.features),
            r"encoder: Encoder gives shape \(3, 10\); accepted .*, here \(2, 3, 4\)$",
        ),
        (gives(lambda batch: (batch.mask, None)), r"encoder: Encoder gives tuple; accepted is a tensor \(sentences, w"),
    ],
)
def test_an_encoder_that_does_not_fit(known, encoder, message):
    sentences, vocabulary = known
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        TaggingNetwork(vocabulary, None, True, encoder)(sentences[[0, 1]])


def test_a_backbone_that_does_not_fit():
    with pytest.raises(TypeError, match=r"^backbone: Transformer does not fit .* made from the shape of a row$"):
        fitting("backbone", nn.Transformer, (3,))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jsonargparse._deprecated.JsonargparseDeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning", "always:output. .* was there:UserWarning")
def test_the_encoder_of_the_page_is_fitted_loaded_and_used(my_module, capsys):
    """And what replaces a file is said in a line that begins with ``warning:``, of the command as of all others."""
    Path("train.conll").write_text("-DOCSTART- O\n\n" + "the D\ncat N\nsat V\n\n" * 30)
    quiet = ["--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false", "--trainer.max_epochs=1"]
    own = ["--model.encoder=my_module.MyEncoder", "--model.encoder.width=16"]
    start.run(["tag", "fit", "--data.train=train.conll", *own, *quiet])
    tagger = load("runs/default")
    assert tagger.model.network.encoder.num_features == 16
    assert [len(tags) for tags in tagger.predict(["the cat sat", ["sat"]])] == [3, 1]
    Path("out.conll").write_text("of before\n")
    (best,) = Path("runs").rglob("best.ckpt")
    capsys.readouterr()
    start.run(["tag", "predict", f"--ckpt_path={best}", "--data.predict=train.conll", "--output=out.conll", *quiet[:2]])
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "out.conll was there" in line] == [
        "warning: output: out.conll was there, with other contents, and is replaced; --output names another file"
    ]
    for recipe, option in (("tag", "encoder"), ("classify", "backbone")):
        data = ["--data.train=train.conll"] if recipe == "tag" else []
        with pytest.raises(
            SystemExit, match=rf"^error: {option}: torch.nn.LSTM needs hidden_size, as in --model.{option}"
        ):
            start.run([recipe, "fit", *data, f"--model.{option}=torch.nn.LSTM", *quiet])
