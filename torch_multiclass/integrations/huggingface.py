"""Hugging Face: token classification with a chain head, saved, loaded and trained by its own methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from torch_multiclass import checks as check
from torch_multiclass.heads import ChainHead
from torch_multiclass.scorers.chain import Chain
from torch_multiclass.tags import tag_constraints

__all__ = ["ChainConfig", "ChainForTokenClassification", "ChainOutput"]


class ChainConfig(PretrainedConfig):  # type: ignore[misc]
    """What a `ChainForTokenClassification` is made of.

    Args:
        encoder: the configuration of the encoder, such as a ``BertConfig``, or what its ``to_dict`` gives.
        loss: the name of a structured loss: ``"crf"``, ``"m3n"``, ``"svmstruct"``, ``"structured_perceptron"``.
        scheme: of the tags in ``id2label``, whose constraints hold in training and decoding, such as ``"BIO"``; None
            for no constraints.
        dropout: of the encoder's states.
        others: of `transformers.PretrainedConfig`: ``num_labels`` or ``id2label`` and ``label2id``.

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
            encoder = dict(encoder)
            encoder = AutoConfig.for_model(encoder.pop("model_type"), **encoder)
        self.encoder, self.loss, self.scheme, self.dropout = encoder, loss, scheme, dropout
        super().__init__(**others)


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
        config: a `ChainConfig`.

    Shape:
        ``input_ids (B, T)``; ``attention_mask`` and ``tag_mask (B, T)``, bool or numbers that are 0 where nothing
        stands; labels ``(B, T)``.

    Raises:
        ValueError: a configuration without an encoder, a mask of another shape.

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
        super().__init__(config)
        if not isinstance(config.encoder, PretrainedConfig):
            raise ValueError(f"encoder: got {check.shown(config.encoder)}; accepted is the configuration of an encoder")
        self.encoder = AutoModel.from_config(config.encoder)
        self.dropout = nn.Dropout(config.dropout)
        tags = [config.id2label[label] for label in range(config.num_labels)]
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
        states = self.encoder(input_ids, attention_mask=attention_mask, **others).last_hidden_state
        scores = self.head(self.dropout(states), mask=_tagged(states, attention_mask, tag_mask, labels))
        loss = None if labels is None else self.head.loss(scores, labels)
        predictions = None if self.training else self.head.predict(scores)
        return ChainOutput(loss=loss, logits=scores.emissions, predictions=predictions)


def _tagged(
    states: Tensor, attention_mask: Tensor | None, tag_mask: Tensor | None, labels: Tensor | None
) -> Tensor | None:
    """Which positions carry a tag, ``(B, T)``; None for all."""
    counts: Tensor | None = None
    for name, mask in (("attention_mask", attention_mask), ("tag_mask", tag_mask)):
        if mask is not None:
            check.shape(name, mask, tuple(states.shape[:2]), "one entry for each position")
            counts = mask != 0 if counts is None else counts & (mask != 0)
    if labels is not None and tag_mask is None:
        labelled = labels != check.IGNORE
        counts = labelled if counts is None else counts & labelled
    return counts


AutoConfig.register(ChainConfig.model_type, ChainConfig, exist_ok=True)
