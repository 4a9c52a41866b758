"""Words of handwritten letters, in ten folds: the set of Kassel (1995) as Taskar, Guestrin and Koller (2003) cut it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .arrays import read
from .new import array_of

__all__ = ["Batch", "Words"]

SOURCE = (
    "it is made of letter.data.gz from ai.stanford.edu/~btaskar/ocr by the lines under Handwriting in "
    "recipes/README.md, and named by --path FILE"
)
"""Where the set is to be had, for those who have no such file."""


@dataclass(frozen=True)
class Batch:
    """Words, padded: features ``(N, T, D)``, labels ``(N, T)`` with -100 where padded, lengths ``(N)``."""

    features: Tensor
    labels: Tensor
    lengths: Tensor

    @property
    def inside(self) -> Tensor:
        """``(N, T)``: where there is a letter."""
        return self.labels >= 0

    @property
    def letters(self) -> tuple[Tensor, Tensor]:
        """All letters by themselves, ``(M, D)`` and ``(M)``."""
        return self.features[self.inside], self.labels[self.inside]


@dataclass(frozen=True)
class Words:
    """All words: each letter a picture of norm 1.

    Args:
        features: ``(M, D)``.
        labels: ``(M)``.
        first: ``(N + 1)``, where each word begins.
        fold: ``(N)``.
        alphabet: the names of the labels.
        shape: of a picture.
    """

    features: Tensor
    labels: Tensor
    first: Tensor
    fold: Tensor
    alphabet: str
    shape: tuple[int, int]

    @classmethod
    def read(cls, path: str, unread: bool = False, name: str = "path") -> Words:
        """An ``.npz`` file with ``images_packed`` (bits), ``letter``, ``word_id`` and ``fold``, one entry a letter.

        Of words that are ``unread``, letters and folds play no part. ``name`` is the argument's, for the errors.
        """
        needs = ("images_packed", "word_id", "image_shape")
        arrays = read(path, name, needs if unread else (*needs, "letter", "fold"), SOURCE)
        if unread:
            arrays |= {one: np.zeros(len(arrays["word_id"]), np.int64) for one in ("letter", "fold")}
        if arrays["image_shape"].shape != (2,) or arrays["image_shape"].dtype.kind not in "iu":
            raise ValueError(f"{name}: image_shape in {path} is {arrays['image_shape']}; accepted are height and width")
        height, width = (int(side) for side in arrays["image_shape"])
        alphabet = "".join(map(str, np.atleast_1d(arrays.get("alphabet", np.array("abcdefghijklmnopqrstuvwxyz")))))
        _check(path, arrays, len(alphabet), name)
        bits = np.unpackbits(arrays["images_packed"], axis=1)[:, : height * width].astype(np.float32)
        ink = np.linalg.norm(bits, axis=1, keepdims=True)
        if not (ink > 0).all():
            raise ValueError(
                f"{name}: letter {int(ink.argmin())} of {path} has no ink; accepted are pictures with some"
            )
        begins = np.flatnonzero(np.diff(arrays["word_id"], prepend=-1))
        return cls(
            torch.tensor(bits / ink),
            torch.tensor(arrays["letter"].astype(np.int64)),
            torch.tensor(np.append(begins, len(bits))),
            torch.tensor(arrays["fold"][begins].astype(np.int64)),
            alphabet,
            (height, width),
        )

    @classmethod
    def of(cls, pictures: Sequence[Any], shape: tuple[int, int], alphabet: str) -> Words:
        """Words that are held as arrays, ``(letters, height, width)`` or ``(letters, height * width)`` each, ink where
        not 0.
        """
        height, width = shape
        accepted = f"letters, {height}, {width}"
        if isinstance(pictures, (str, bytes)) or not hasattr(pictures, "__len__") or not len(pictures):
            raise ValueError(
                f"words: got {type(pictures).__name__}; accepted is a list of arrays ({accepted}), one a word"
            )
        found = []
        for number, given in enumerate(pictures):
            letters = array_of(given, accepted, f"words: entry {number}")
            if letters.ndim == 0 or len(letters) == 0 or letters.shape[1:] not in (shape, (height * width,)):
                raise ValueError(f"words: entry {number} has shape {letters.shape}; accepted is ({accepted})")
            try:
                bits = letters.reshape(len(letters), -1).astype(np.float32)
            except (ValueError, TypeError):
                raise ValueError(f"words: entry {number} has dtype {letters.dtype}; accepted are numbers") from None
            if not np.isfinite(bits).all():
                raise ValueError(f"words: entry {number} is not finite; accepted are finite numbers")
            if not (letter := bits.any(1)).all():
                at = int(letter.argmin())
                raise ValueError(f"words: letter {at} of entry {number} has no ink; accepted are pictures with some")
            found.append((bits != 0).astype(np.float32))
        bits = np.concatenate(found)
        ends = np.cumsum([len(one) for one in found])
        none = torch.zeros(len(bits), dtype=torch.int64)
        return cls(
            torch.tensor(bits / np.linalg.norm(bits, axis=1, keepdims=True)),
            none,
            torch.tensor(np.append(0, ends)),
            torch.zeros(len(found), dtype=torch.int64),
            alphabet,
            shape,
        )

    def batch(self, words: Tensor) -> Batch:
        """Some words, by their numbers."""
        lengths = self.first[words + 1] - self.first[words]
        steps = torch.arange(int(lengths.max()))
        inside = steps < lengths.unsqueeze(1)
        rows = (self.first[words].unsqueeze(1) + steps).where(inside, torch.tensor(0))
        features = self.features[rows] * inside.unsqueeze(2)
        return Batch(features, self.labels[rows].masked_fill(~inside, -100), lengths)


def _check(path: str, arrays: dict[str, np.ndarray], letters: int, argument: str) -> None:
    """Raise unless there is one entry a letter, of a letter of the alphabet in one of ten folds."""
    count = len(arrays["letter"])
    for name, most in (("letter", letters), ("word_id", None), ("fold", 10)):
        entries = arrays[name]
        if entries.shape != (count,) or count == 0 or entries.dtype.kind not in "iu":
            raise ValueError(
                f"{argument}: {name} in {path} has dtype {entries.dtype}, shape {entries.shape}; accepted are whole "
                "numbers, one a letter"
            )
        if most is not None and not 0 <= entries.min() <= entries.max() < most:
            raise ValueError(
                f"{argument}: {name} in {path} spans {entries.min()}..{entries.max()}; accepted is 0..{most - 1}"
            )
    packed, bits = arrays["images_packed"], int(np.prod(arrays["image_shape"]))
    if packed.dtype != np.uint8 or packed.shape != (count, -(-bits // 8)):
        raise ValueError(
            f"{argument}: images_packed in {path} has dtype {packed.dtype}, shape {packed.shape}; accepted is uint8, "
            f"({count}, {-(-bits // 8)}): {bits} bits a letter"
        )
