"""Tagged sentences as batches: files or the embedded treebank in, padded tensors bucketed by length out."""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import lightning
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

from torch_multiclass.tags import Constraints

from ..names import listed
from ..ranges import within
from ..start import warn
from .rows import IGNORED
from .sentences import Sentence, read, remark
from .tagging import how
from .vocabulary import FEATURES, LONGEST_WORD, PADDING, Vocabulary


def porttinari() -> Path:
    """The file of Porttinari-base: 8,420 Portuguese news sentences, part of the package ``dante-corpora``."""
    try:
        files = importlib.metadata.files("dante-corpora") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.as_posix() == "dante/data/porttinari/annotated.conllu":
            return Path(str(file.locate()))
    raise FileNotFoundError(
        "train: got none, and the embedded treebank is not installed; "
        "accepted is the path of a CoNLL-U or CoNLL file or of JSON lines, or `pip install --no-deps dante-corpora`"
    )


def split(sentences: Sequence[Sentence]) -> tuple[list[Sentence], list[Sentence], list[Sentence]]:
    """Train, dev and test: of each ten sentences the ninth is dev, the tenth test, the others train."""
    parts: tuple[list[Sentence], ...] = ([], [], [])
    for i, sentence in enumerate(sentences):
        parts[max(0, i % 10 - 7)].append(sentence)
    return parts[0], parts[1], parts[2]


class Batch(NamedTuple):
    """B sentences of at most T words, over U distinct forms."""

    features: Tensor
    """(U, F) numbers of each form's features."""
    characters: Tensor
    """(U, C) numbers of each form's characters, padded with ``PADDING``."""
    words: Tensor
    """(B, T) which form each word is; 0 in the padding."""
    mask: Tensor
    """(B, T) true where there is a word."""
    tags: Tensor
    """(B, T) gold tags; -100 in the padding and where a word has none."""
    unknown: Tensor
    """(B, T) true where training never showed the word."""
    index: Tensor
    """(B,) the sentences' places in their file."""
    lengths: tuple[int, ...]
    """Words of each sentence, as numbers."""


class TaggedSentences(Dataset[Batch]):
    """The sentences that have words, as numbers of a vocabulary; ``data[rows]`` is the batch of some of them.

    Args:
        sentences: of a file.
        vocabulary: of the tagger.
        with_tags: whether to read the tags too.
        train: whether to train on them, so that a tag without a score is an error.
        constraints: what may follow what; two gold tags that may not are left unlabelled, with one warning.
    """

    def __init__(
        self,
        sentences: Sequence[Sentence],
        vocabulary: Vocabulary,
        *,
        with_tags: bool = True,
        train: bool = False,
        constraints: Constraints | None = None,
    ):
        numbers: dict[str, int] = {}
        self.rows: list[tuple[int, Tensor, Tensor]] = []
        first, unlawful, sentences_of_them = "", 0, 0
        labelled = False
        for i, sentence in enumerate(sentences):
            if not sentence.words:
                continue
            forms = torch.tensor([numbers.setdefault(form, len(numbers)) for form in sentence.forms])
            gold = sentence.tags(vocabulary.column) if with_tags else [None] * len(forms)
            labelled |= any(tag is not None for tag in gold)
            tags = torch.tensor([IGNORED if tag is None else vocabulary.tag_number(tag) for tag in gold])
            if train and int(tags.max()) >= len(vocabulary.tags):
                place = int(tags.argmax())
                raise ValueError(
                    f"{sentence.place(place)}: got tag {gold[place]!r}; accepted are those that the training of the "
                    f"checkpoint began with: {listed(vocabulary.tags)}"
                )
            if constraints is not None:
                places = forbidden(tags, constraints)
                if places.any():
                    at = int(broken(tags, constraints).nonzero()[0])
                    where = sentence.place(min(at, len(gold) - 1))
                    first = first or f"{where}: {how(gold, at)} breaks the scheme (in sentence {len(self.rows) + 1})"
                    unlawful += int(places.sum())
                    sentences_of_them += 1
                tags[places] = IGNORED
            self.rows.append((i, forms, tags))
        if with_tags and not labelled:
            path, column = ("the file", vocabulary.column)
            if sentences:
                path, column = sentences[0].path, sentences[0].name(column)
            raise ValueError(f"{path}: got no tag in column {column}; accepted is a column that holds tags")
        if unlawful:
            warn(
                f"{first}; {sentences_of_them} of {len(self.rows)} sentences do: {unlawful} such tags are left out of "
                "the training, whose loss they would make infinite"
            )
        encoded = [vocabulary.encode(form) for form in numbers]
        self.features = torch.tensor([features for features, _ in encoded]).reshape(-1, len(FEATURES))
        padded = [characters + [PADDING] * (LONGEST_WORD - len(characters)) for _, characters in encoded]
        self.characters = torch.tensor(padded).reshape(-1, LONGEST_WORD)
        self.unknown = torch.tensor([not vocabulary.knows(form) for form in numbers], dtype=torch.bool)
        self.lengths = [len(forms) for _, forms, _ in self.rows]

    def __getitem__(self, rows: list[int]) -> Batch:
        """The batch of some rows; of none too, which a process draws when another has one batch more."""
        index = torch.tensor([self.rows[i][0] for i in rows], dtype=torch.long)
        lengths = tuple(self.lengths[i] for i in rows)
        nothing = [torch.zeros(0, dtype=torch.long)] * (not rows)
        forms = pad_sequence([self.rows[i][1] for i in rows] or nothing, batch_first=True)[: len(rows)]
        tags = pad_sequence([self.rows[i][2] for i in rows] or nothing, True, IGNORED)[: len(rows)]
        mask = torch.arange(forms.shape[1]) < torch.tensor(lengths, dtype=torch.long)[:, None]
        distinct, words = forms.unique(return_inverse=True)
        characters = self.characters[distinct]
        used = max(1, int((characters != PADDING).sum(1).max())) if rows else 0
        return Batch(
            self.features[distinct], characters[:, :used], words, mask, tags, self.unknown[forms] & mask, index, lengths
        )


def forbidden(tags: Tensor, constraints: Constraints) -> Tensor:
    """Which labels of a sentence are part of a forbidden pair; freeing both of them leaves a lawful sequence."""
    places = broken(tags, constraints)
    return places[:-1] | places[1:]


def broken(tags: Tensor, constraints: Constraints) -> Tensor:
    """Where the labels of a sentence may not follow the one before, ``(T + 1)``: first the start, last the end."""
    known = tags != IGNORED
    label = tags.where(known, 0)
    return torch.cat(
        [
            constraints.start[label[:1]].isinf() & known[:1],
            constraints.transitions[label[:-1], label[1:]].isinf() & known[:-1] & known[1:],
            constraints.end[label[-1:]].isinf() & known[-1:],
        ]
    )


class LengthBuckets(Sampler[list[int]]):
    """Batches of sentences of nearly one length, of at most ``tokens`` words with their padding.

    Each process of ``world`` draws every ``world``-th batch, all the same number of them: in training the batches
    left over wait for another epoch, otherwise they are made up for with empty ones.
    """

    def __init__(
        self, lengths: Sequence[int], tokens: int, *, train: bool, seed: int = 0, rank: int = 0, world: int = 1
    ):
        self.lengths, self.tokens, self.train, self.seed = list(lengths), tokens, train, seed
        self.rank, self.world, self.epoch = rank, world, 0

    def set_epoch(self, epoch: int) -> None:
        """Shuffle differently in each epoch, and alike in all processes."""
        self.epoch = epoch

    def _batches(self) -> list[list[int]]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        # In training, sentences of about one length meet different neighbours each time.
        blur = 0.2 * torch.rand(len(self.lengths), generator=generator) * self.train
        keys = (torch.tensor(self.lengths) * (1 + blur)).tolist()
        order = sorted(range(len(keys)), key=keys.__getitem__)
        batches: list[list[int]] = [[]]
        longest = 0
        for i in order:
            longest = max(longest, self.lengths[i])
            if batches[-1] and longest * (len(batches[-1]) + 1) > self.tokens:
                batches.append([])
                longest = self.lengths[i]
            batches[-1].append(i)
        if self.train:
            batches = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        return batches

    def _share(self) -> list[list[int]]:
        batches = self._batches()
        if self.train and len(batches) >= self.world:
            batches = batches[: len(batches) // self.world * self.world]
        batches += [[]] * (-len(batches) % self.world)
        return batches[self.rank :: self.world]

    def __iter__(self) -> Iterator[list[int]]:
        yield from self._share()  # once the first is asked for: by then a resumed run has set the epoch

    def __len__(self) -> int:
        return len(self._share())


USES = {"train": "training", "dev": "choosing the best weights", "test": "testing"}
"""What the sentences are for."""
HELD_OUT = {"dev": ", the ninth of each ten,", "test": ", the tenth of each ten,"}
"""Which of the training file they are, without a file of their own."""


class Treebank(lightning.LightningDataModule):
    """Sentences of CoNLL-U files, CoNLL files of two to five columns, or JSON lines, plain or gzipped.

    Args:
        train: the training file; none means the embedded Portuguese treebank Porttinari.
        dev: the development file; none holds out the ninth of each ten training sentences.
        test: the test file; none holds out the tenth of each ten training sentences.
        predict: the file to tag: of any of these, or plain text, a sentence a line.
        format: of the files, ``conllu``, ``columns``, ``jsonl`` or ``text``; by default what each looks like.
        split_text: part the words and punctuation marks of plain text; false where blanks part the words already.
        batch_tokens: words of one batch, padding included; a longer sentence is a batch of its own.
        seed: of the order of the training batches.
    """

    def __init__(
        self,
        train: str | None = None,
        dev: str | None = None,
        test: str | None = None,
        predict: str | None = None,
        batch_tokens: int = 640,
        seed: int = 0,
        format: Literal["conllu", "columns", "jsonl", "text"] | None = None,
        split_text: bool = True,
    ):
        super().__init__()
        within("batch_tokens", batch_tokens)
        self.files = {"dev": dev, "test": test}
        self.train_file, self.predict_file = train, predict
        self.batch_tokens, self.seed, self.format, self.split_text = batch_tokens, seed, format, split_text
        self.sentences: dict[str, list[Sentence]] = {}

    def setup(self, stage: str) -> None:
        """Read the files that the stage needs, each once."""
        if stage == "predict":
            if self.predict_file is None:
                raise ValueError("predict: got none; accepted is the file to tag")
            if "predict" not in self.sentences:
                found = read(self.predict_file, self.format, untagged=True, split=self.split_text)
                self.sentences["predict"] = found
                if self.format is None:
                    remark(self.predict_file, found, self.split_text)
            return
        needed = {"fit": ("train", "dev", "test"), "validate": ("dev",), "test": ("test",)}[stage]
        for part in needed:
            if part not in self.sentences and self.files.get(part):
                self.sentences[part] = read(str(self.files[part]), self.format)
        if all(part in self.sentences for part in needed):
            return
        path = self.train_file or porttinari()
        whole = read(path, self.format if self.train_file else None)
        count = sum(bool(sentence.words) for sentence in whole)
        train, dev, test = split(whole)
        # What has a file of its own is not held out of the training file.
        kept = train + [s for part, held in (("dev", dev), ("test", test)) if self.files[part] for s in held]
        for part, sentences in (("train", kept), ("dev", dev), ("test", test)):
            if not self.files.get(part):
                self.sentences[part] = sentences
        for part in needed:
            if not any(sentence.words for sentence in self.sentences[part]):
                raise ValueError(
                    f"{part}: got no sentence from {path} ({count} sentences); "
                    "accepted is a file of its own, or ten sentences, with an empty line between, to hold some out of"
                )

    def told(self, *parts: str) -> str:
        """How many sentences, of which file, are for what: of parts that have been read."""
        words = []
        for part in parts:
            held = self.sentences[part]
            count = sum(bool(sentence.words) for sentence in held)
            first = f"{count} sentence{'s' * (count != 1)}" if not words else str(count)
            path = self.files.get(part) or self.train_file or "the embedded treebank"
            which = "" if self.files.get(part) else HELD_OUT.get(part, "")
            words.append(f"{first} of {path}{which} for {USES[part]}")
        return " + ".join(words)

    def check_source(self, learned_from: str | None, stage: str) -> None:
        """Raise where the embedded treebank would stand in for the file that a checkpoint learned from."""
        named = self.train_file or (stage != "fit" and self.files["test" if stage == "test" else "dev"])
        if learned_from is not None and stage != "predict" and not named:
            raise ValueError(
                f"train: got none, but the checkpoint was trained on {learned_from}; accepted is that file, or for "
                "test a --data.test"
            )

    def train_dataloader(self) -> DataLoader[Batch]:
        """Batches of like lengths, in an order that changes with the epoch."""
        return self._loader("train", train=True)

    def val_dataloader(self) -> DataLoader[Batch]:
        """The development sentences."""
        return self._loader("dev")

    def test_dataloader(self) -> DataLoader[Batch]:
        """The test sentences."""
        return self._loader("test")

    def predict_dataloader(self) -> DataLoader[Batch]:
        """The sentences to tag; what stands in the tag column plays no part."""
        return self._loader("predict", with_tags=False)

    def _loader(self, part: str, *, train: bool = False, with_tags: bool = True) -> DataLoader[Batch]:
        assert self.trainer is not None
        tagger = self.trainer.lightning_module
        with warnings.catch_warnings():
            if self.trainer.global_rank:  # what is wrong with the file is said once
                warnings.simplefilter("ignore")
            data = TaggedSentences(
                self.sentences[part],
                tagger.vocabulary,
                with_tags=with_tags,
                train=train,
                constraints=tagger.constraints if train else None,
            )
        batches = LengthBuckets(
            data.lengths,
            self.batch_tokens if train else 4 * self.batch_tokens,
            train=train,
            seed=self.seed,
            rank=self.trainer.global_rank,
            world=self.trainer.world_size,
        )
        # A generator of its own leaves the random numbers of the training where they are.
        return DataLoader(data, sampler=batches, batch_size=None, generator=torch.Generator())
