"""Hugging Face: token classification with a chain head, saved, loaded and trained by its own methods."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForTokenClassification,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import ModelOutput

from torch_multiclass import checks as check
from torch_multiclass.heads import ChainHead
from torch_multiclass.scorers.chain import Chain
from torch_multiclass.tags import SCHEMES, tag_constraints

__all__ = ["ChainConfig", "ChainForTokenClassification", "ChainOutput"]

LOSSES = ("crf", "cross_entropy", "m3n", "svmstruct", "structured_perceptron")


class ChainConfig(PretrainedConfig):  # type: ignore[misc]
    """What a `ChainForTokenClassification` is made of.

    Args:
        encoder: the configuration of the encoder, such as a ``BertConfig``, or what its ``to_dict`` gives; no model can
            be made without.
        loss: the name of a structured loss: ``"crf"``, ``"m3n"``, ``"svmstruct"``, ``"structured_perceptron"``.
        scheme: of the tags in ``id2label``, whose constraints hold in training and decoding, such as ``"BIO"``; None
            for no constraints.
        dropout: of the encoder's states.
        others: of `transformers.PretrainedConfig`: ``num_labels`` or ``id2label`` and ``label2id``.

    Raises:
        TypeError: an encoder that is no configuration.
        ValueError: a model type that transformers does not know, fields of an encoder that it does not take or that are
            misspelt, a loss or a scheme that is none, names of other labels than 0, 1, 2 ..., a dropout that is no
            share.

    Reference: Lample et al. (2016), Neural architectures for named entity recognition, section 2.

    Example:
        >>> from transformers import BertConfig
        >>> config = ChainConfig(BertConfig(vocab_size=30), num_labels=5)
        >>> config.num_labels, config.encoder.model_type
        (5, 'bert')
    """

    model_type = "torch_multiclass_chain"
    has_no_defaults_at_init = True

    def __init__(
        self,
        encoder: PretrainedConfig | dict[str, Any] | None = None,
        loss: str = "crf",
        scheme: str | None = None,
        dropout: float = 0.1,
        **others: Any,
    ) -> None:
        if isinstance(encoder, dict):
            encoder = _configuration(encoder)
        if not isinstance(encoder, (PretrainedConfig, type(None))):
            how = ", as AutoConfig.from_pretrained(name)" if isinstance(encoder, str) else ""
            raise TypeError(f"encoder: got {check.shown(encoder)}; accepted is the configuration of an encoder{how}")
        names = others.get("id2label")
        if names is not None and not (
            isinstance(names, Mapping) and {*map(str, names)} == {*map(str, range(len(names)))}
        ):
            raise ValueError(
                f"id2label: got {check.shown(names)}; accepted is a dict from the "
                "labels 0, 1, 2 ... to their names, as dict(enumerate(names))"
            )
        if others.get("num_labels") is not None:
            check.whole("num_labels", others["num_labels"])
        loss = check.named("loss", loss, LOSSES)
        check.choice("scheme", scheme, SCHEMES, optional=True)
        self.encoder, self.loss, self.scheme, self.dropout = encoder, loss, scheme, check.share("dropout", dropout)
        super().__init__(**others)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **others: Any) -> Any:
        """The configuration of a saved one, whose encoder may have fields of another release of transformers."""
        encoder = config_dict.get("encoder")
        if isinstance(encoder, dict):
            config_dict = config_dict | {"encoder": _configuration(encoder, saved=True)}
        return super().from_dict(config_dict, **others)


def _configuration(fields: dict[str, Any], saved: bool = False) -> PretrainedConfig:
    """The configuration of an encoder; raise where the fields are not those of its kind."""
    fields = dict(fields)
    kind = fields.pop("model_type", None)
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise ValueError(f"encoder: has the model_type {kind!r}; accepted is one that transformers knows")
    if not all(isinstance(name, str) for name in fields):
        raise TypeError(f"encoder: has the fields {check.shown(list(fields))}; accepted are names")
    try:
        made: PretrainedConfig = AutoConfig.for_model(kind, **fields)
    except Exception as error:  # a field's own check may raise anything
        raise ValueError(
            f"encoder: {_first(error)}; accepted are fields of {CONFIG_MAPPING[kind].__name__}, each of its type"
        ) from error
    if not saved:
        _known(fields, kind)
    return made


def _known(fields: dict[str, Any], kind: str) -> None:
    """Raise for a misspelt field, of which transformers says nothing; warn of one that means nothing to it."""
    try:
        default = CONFIG_MAPPING[kind]()
    except Exception:  # some kinds cannot be made of nothing
        return
    strange = [name for name in fields if not hasattr(default, name)]
    for name in strange:
        near = get_close_matches(name, default.to_dict(), 1, 0.85)
        if near:
            raise ValueError(
                f"encoder: has the field {name!r}, not one of {type(default).__name__}; accepted is {near[0]!r}"
            )
    if strange:
        warnings.warn(
            f"encoder: {type(default).__name__} has no field {', '.join(strange)}, which changes nothing", stacklevel=4
        )


def _first(error: Exception) -> str:
    """The kind of an error and its first words, in one line."""
    return f"{type(error).__name__}, {' '.join(str(error).split())[:200]}"


@dataclass
class ChainOutput(ModelOutput):  # type: ignore[misc]
    """What a `ChainForTokenClassification` answers."""

    loss: Tensor | None = None
    """Where there are labels."""
    logits: Tensor | None = None
    """The emissions ``(B, T, K)``."""
    predictions: Tensor | None = None
    """The best labelling ``(B, T)``, -100 where a position has no tag; outside of training."""


class ChainForTokenClassification(PreTrainedModel):  # type: ignore[misc]
    r"""An encoder and a `ChainHead` over its states.

    Positions that carry no tag are taken out of the sequence, so that tags of words that follow each other are
    neighbours: special tokens, and all pieces of a word but one. Where there are labels these are the positions with
    -100, as Hugging Face's recipes write them; else say so by ``tag_mask``.

    Args:
        config: a `ChainConfig`. The encoder's weights are drawn; those of a trained one take their place by
            ``model.encoder = AutoModel.from_pretrained(name)``, of whose ``config`` the configuration is then made.

    Shape:
        ``input_ids (B, T)``; ``attention_mask`` and ``tag_mask (B, T)``, bool or numbers that are 0 where nothing
        stands; labels ``(B, T)``.

    Raises:
        TypeError: words, masks or labels that are not tensors of numbers of their kind.
        ValueError: a configuration without an encoder, or with one that no encoder of text can be made of, a mask or
            labels of another shape, a number of a word that the encoder does not have.

    Reference: Lample et al. (2016), Neural architectures for named entity recognition, section 2.

    Example:
        >>> import torch
        >>> from transformers import BertConfig
        >>> encoder = BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        ...                      intermediate_size=16)
        >>> model = ChainForTokenClassification(ChainConfig(encoder, num_labels=5)).eval()
        >>> words, mask = torch.randint(30, (2, 7)), torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1]])
        >>> model(words, attention_mask=mask).predictions[0, 5:]
        tensor([-100, -100])
        >>> model(words, attention_mask=mask, labels=torch.zeros(2, 7, dtype=torch.long)).loss.shape
        torch.Size([])
    """

    config_class = ChainConfig
    base_model_prefix = "encoder"

    def __init__(self, config: ChainConfig) -> None:
        if not isinstance(config, ChainConfig):
            raise TypeError(f"config: got {check.shown(config)}; accepted is a ChainConfig")
        super().__init__(config)
        if config.encoder is None:
            raise ValueError("encoder: got None; accepted is a ChainConfig with the configuration of an encoder")
        self.encoder = _encoder(config.encoder)
        self.dropout = nn.Dropout(config.dropout)
        tags = [config.id2label[label] for label in range(config.num_labels)]
        if config.scheme is not None and tags == [f"LABEL_{label}" for label in range(config.num_labels)]:
            raise ValueError(
                f"id2label: names no tags, which scheme={config.scheme!r} is of; accepted with it is "
                "ChainConfig(..., id2label=dict(enumerate(tags)))"
            )
        constraints = None if config.scheme is None else tag_constraints(tags, config.scheme)
        self.head = ChainHead(config.encoder.hidden_size, config.num_labels, config.loss, constraints=constraints)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, Chain):
            module.reset_parameters()
        else:
            super()._init_weights(module)

    def get_input_embeddings(self) -> nn.Module:
        """Those of the encoder."""
        found: nn.Module = self.encoder.get_input_embeddings()
        return found

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        tag_mask: Tensor | None = None,
        **others: Any,
    ) -> ChainOutput:
        """The loss where there are labels, the emissions, and outside of training the best labelling."""
        others.pop("num_items_in_batch", None)  # the loss is a mean over sequences
        others["return_dict"] = True
        words = self._words(input_ids, others.get("inputs_embeds"))
        counts = _tagged(words, attention_mask, tag_mask, labels, self.config.num_labels)
        if input_ids is not None:
            input_ids = words if words.dtype == torch.int32 else words.long()
        try:
            states = self.encoder(input_ids, attention_mask=attention_mask, **others).last_hidden_state
        except (IndexError, RuntimeError, ValueError) as error:
            if self.config.encoder.is_encoder_decoder and isinstance(error, ValueError):
                raise ValueError(
                    f"encoder: {_first(error)}; accepted are encoders of text without a decoder that asks for more"
                ) from error
            most = getattr(self.config.encoder, "max_position_embeddings", None)
            if not isinstance(most, int) or words.shape[1] <= most:
                raise
            raise ValueError(
                f"input_ids: got shape {tuple(words.shape)}; accepted are at most {most} positions by this "
                "encoder, such as tokenizer(..., truncation=True) gives"
            ) from error
        scores = self.head(self.dropout(states), mask=counts)
        loss = None if labels is None else self.head.loss(scores, labels)
        predictions = None if self.training else self.head.predict(scores)
        return ChainOutput(loss=loss, logits=scores.emissions, predictions=predictions)

    def _words(self, input_ids: Tensor | None, embedded: Tensor | None) -> Tensor:
        """A number for each position ``(B, T)``; raise where these are no words of the encoder's."""
        if input_ids is None:
            if not isinstance(embedded, Tensor) or embedded.ndim != 3:
                raise ValueError(
                    "input_ids: got None; accepted are numbers of words (B, T), or inputs_embeds (B, T, D)"
                )
            return embedded[..., 0]
        check.integers("input_ids", input_ids, "numbers of words")
        if input_ids.ndim != 2 or input_ids.numel() == 0:
            raise ValueError(f"input_ids: got shape {tuple(input_ids.shape)}; accepted is (B, T), one word at least")
        most = getattr(self.config.encoder, "vocab_size", None)
        if isinstance(most, int):
            check.label_range("input_ids", input_ids, most)
        return input_ids


def _encoder(config: PretrainedConfig) -> Any:
    """The network of a configuration; raise unless it answers a state of so many numbers for each word."""
    kind = type(config).__name__
    try:
        made = AutoModel.from_config(config)
    except ImportError:
        raise
    except Exception as error:  # sizes that do not fit together raise anything
        raise ValueError(
            f"encoder: {_first(error)}; accepted is a {kind} that transformers makes a model of"
        ) from error
    words = made.main_input_name == "input_ids" and config.get_text_config() is config
    if not (words and isinstance(getattr(config, "hidden_size", None), int)):
        raise ValueError(f"encoder: got {kind}; accepted is the configuration of an encoder of text with a hidden_size")
    return made


def _tagged(
    words: Tensor,
    attention_mask: Tensor | None,
    tag_mask: Tensor | None,
    labels: Tensor | None,
    num_labels: int,
) -> Tensor | None:
    """Which positions carry a tag, ``(B, T)``; None for all."""
    counts: Tensor | None = None
    for name, mask in (("attention_mask", attention_mask), ("tag_mask", tag_mask)):
        if mask is not None:
            check.is_tensor(name, mask)
            check.dense(name, mask)
            check.shape(name, mask, tuple(words.shape), "one entry for each position")
            check.same_device(name, mask, "input_ids", words)
            counts = mask != 0 if counts is None else counts & (mask != 0)
    if labels is not None:
        check.class_indices("labels", labels)
        check.shape("labels", labels, tuple(words.shape), "one label for each position")
        check.same_device("labels", labels, "input_ids", words)
        labelled = labels != check.IGNORE
        check.label_range("labels", labels, num_labels, labelled)
    if labels is not None and tag_mask is None:
        counts = labelled if counts is None else counts & labelled
    return counts


AutoConfig.register(ChainConfig.model_type, ChainConfig, exist_ok=True)
AutoModelForTokenClassification.register(ChainConfig, ChainForTokenClassification, exist_ok=True)
