"""Every encoder of the recipes gives a row the same features whatever stands beside it in the batch."""

import pytest
import torch

from recipes.data.conllu import read
from recipes.data.treebank import TaggedSentences
from recipes.data.vocabulary import PADDING, Vocabulary
from recipes.models import MLP, ConvNet
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
def tagging(tmp_path):
    """The sentences, and a network that knows their words."""
    text = ""
    for sentence in SENTENCES:
        words = enumerate(sentence.split(), 1)
        text += "".join(f"{i}\t{word}\t_\t{word[0].upper()}" + "\t_" * 6 + "\n" for i, word in words) + "\n"
    (tmp_path / "a.conllu").write_text(text, encoding="utf-8")
    known = read(tmp_path / "a.conllu")
    vocabulary = Vocabulary.learn(known, "UPOS", least=1)
    return TaggedSentences(known, vocabulary), TaggingNetwork(vocabulary, None, True, hidden=8, characters=8)


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
