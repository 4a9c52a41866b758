import itertools
from pathlib import Path

import pytest
import torch

from recipes.data.conllu import read
from recipes.data.treebank import LengthBuckets, TaggedSentences, Treebank, forbidden, porttinari
from recipes.data.vocabulary import PADDING, UNKNOWN, Vocabulary
from torch_multiclass import tag_constraints

LENGTHS = [3, 1, 7, 2, 2, 9, 4, 40, 1, 5, 6, 3, 3, 8]


def block(words, tags):
    rows = zip(words.split(), tags.split(), strict=True)
    return "".join(f"{i}\t{word}\t_\t{tag}" + "\t_" * 6 + "\n" for i, (word, tag) in enumerate(rows, 1)) + "\n"


def write(path, *sentences):
    path.write_text("".join(block(*sentence) for sentence in sentences), encoding="utf-8")
    return str(path)


@pytest.fixture
def data(tmp_path):
    known = read(write(tmp_path / "a.conllu", ("the cat sat", "D N V"), ("The cat", "D N"), ("sat", "V")))
    vocabulary = Vocabulary.learn(known, "UPOS")
    (tmp_path / "b.conllu").write_text(
        "# no words\n\n" + block("the dog", "D _") + block("Cat the sat", "N Z V"), encoding="utf-8"
    )
    return TaggedSentences(read(tmp_path / "b.conllu"), vocabulary)


def test_a_batch_says_what_stands_in_the_file(data):
    batch = data[[1, 0]]
    assert batch.index.tolist() == [2, 1]  # the sentence without words has a place in the file, and no row
    assert batch.lengths == (3, 2)
    assert batch.mask.tolist() == [[True] * 3, [True, True, False]]
    assert batch.tags.tolist() == [[1, 3, 2], [0, -100, -100]]  # Z, unseen in training, counts as a tag; _ is none
    assert batch.unknown.tolist() == [[False, False, False], [False, True, False]]
    the = batch.words[0, 1]
    assert batch.words[1, 0] == the
    assert (batch.features[batch.words[1, 1], 0], batch.features[the, 0] > PADDING) == (UNKNOWN, True)
    assert batch.characters.shape == (4, 3)  # four forms of three letters: the, dog, Cat, sat


def test_a_batch_of_nothing(data):
    batch = data[[]]
    assert [len(part) for part in batch] == [0] * len(batch)
    assert batch.words.shape == (0, 0)


@pytest.mark.parametrize("train", [True, False])
def test_buckets_hold_each_sentence_once_and_few_tokens(train):
    batches = list(LengthBuckets(LENGTHS, 12, train=train))
    assert sorted(i for batch in batches for i in batch) == list(range(len(LENGTHS)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(LENGTHS[i] for i in batch) <= 12
    assert [LENGTHS.index(40)] in batches


def test_training_batches_change_with_the_epoch_and_the_seed():
    sampler = LengthBuckets(LENGTHS, 12, train=True)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    assert list(LengthBuckets(LENGTHS, 12, train=True, seed=1)) != first


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("world", [2, 3, 30])
def test_processes_share_the_batches(train, world):
    whole = list(LengthBuckets(LENGTHS, 12, train=train))
    shares = [list(LengthBuckets(LENGTHS, 12, train=train, rank=rank, world=world)) for rank in range(world)]
    assert len({len(share) for share in shares}) == 1
    drawn = sorted(batch for share in shares for batch in share if batch)
    if train and world < len(whole):
        assert len(drawn) == len(whole) // world * world
        assert all(batch in whole for batch in drawn)
    else:
        assert drawn == sorted(whole)


def test_files_of_their_own_are_not_held_out(tmp_path):
    train = write(tmp_path / "train.conllu", *[("w" * (i + 1), "X") for i in range(20)])
    dev = write(tmp_path / "dev.conllu", ("d", "X"))
    treebank = Treebank(train=train, dev=dev)
    treebank.setup("fit")
    treebank.setup("test")
    sizes = {part: sorted(len(s.forms[0]) for s in sentences) for part, sentences in treebank.sentences.items()}
    assert sizes == {"dev": [1], "test": [10, 20], "train": [n for n in range(1, 21) if n not in (10, 20)]}


def test_too_little_to_hold_out_is_an_error(tmp_path):
    train = write(tmp_path / "train.conllu", ("a b", "X X"))
    with pytest.raises(ValueError, match=r"dev: got no sentence from .*train.conllu \(1 sentences\)"):
        Treebank(train=train).setup("fit")


def test_the_embedded_treebank():
    assert porttinari().stat().st_size > 5e6


def lawful(tags, free, constraints):
    """Whether the unlabelled positions can be filled so that nothing forbidden remains, by trying all ways."""
    choices = [range(len(constraints.start)) if unknown else [tag] for tag, unknown in zip(tags, free, strict=True)]
    for way in itertools.product(*choices):
        steps = sum(float(constraints.transitions[pair]) for pair in itertools.pairwise(way))
        if constraints.start[way[0]] + steps + constraints.end[way[-1]] == 0:
            return True
    return False


@pytest.mark.parametrize("scheme", ["BIO", "IOB1", "BIOES"])
def test_gold_tags_that_break_a_scheme_are_left_out(scheme):
    names = ["O", *(f"{prefix}-{kind}" for prefix in sorted({*scheme} - {*"O1"}) for kind in "xy")]
    constraints = tag_constraints(names, scheme)
    generator = torch.Generator().manual_seed(0)
    for length in (1, 2, 3, 4, 4, 4, 4, 4):
        for tags in torch.randint(len(names), (12, length), generator=generator):
            free = forbidden(tags, constraints)
            assert lawful(tags.tolist(), free.tolist(), constraints)
            assert bool(free.any()) != lawful(tags.tolist(), [False] * length, constraints)


def test_a_resumed_training_refuses_new_tags(tmp_path):
    vocabulary = Vocabulary.learn(read(write(tmp_path / "a.conllu", ("a", "X"))), "UPOS")
    sentences = read(write(tmp_path / "b.conllu", ("a b", "X _"), ("c d", "X Y")))
    with pytest.raises(ValueError, match=r"b.conllu:5: got tag 'Y'; accepted are those .* began with: X"):
        TaggedSentences(sentences, vocabulary, train=True)


def test_the_first_broken_tag_is_named(tmp_path):
    path = write(tmp_path / "a.conllu", ("a b", "O B-x"), ("c d e", "O O I-x"))
    Path(path).write_text("# no words are no sentence\n\n" + Path(path).read_text())
    sentences = read(path)
    vocabulary = Vocabulary.learn(sentences, "UPOS")
    with pytest.warns(UserWarning, match=r"a.conllu:8: I-x after O breaks .*in sentence 2\); 1 of 2 .*: 2 s"):
        data = TaggedSentences(sentences, vocabulary, constraints=tag_constraints(vocabulary.tags, "BIO"))
    assert data[[1]].tags.tolist() == [[2, -100, -100]]


def test_long_and_odd_words_fit(tmp_path):
    sentences = read(write(tmp_path / "a.conllu", ("x" * 500 + " 日本 🙂", "A B C")))
    batch = TaggedSentences(sentences, Vocabulary.learn(sentences, "UPOS"))[[0]]
    assert batch.characters.shape == (3, 24)
    assert torch.equal((batch.characters != PADDING).sum(1).sort().values, torch.tensor([1, 2, 24]))
