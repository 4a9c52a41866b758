"""A token-classification model with a chain head: saved, loaded and trained by Hugging Face's own methods."""

import warnings

import pytest
import torch

import torch_multiclass as tm

transformers = pytest.importorskip("transformers", reason="the extra 'integrations' is not installed")
from torch_multiclass.integrations.huggingface import ChainConfig, ChainForTokenClassification  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of transformers and accelerate themselves

TAGS = ["O", "B-X", "I-X"]


def encoder(name="bert"):
    return transformers.AutoConfig.for_model(
        name, vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=40,
    )  # fmt: skip


def model(**options):
    torch.manual_seed(0)
    names = {"id2label": dict(enumerate(TAGS)), "label2id": {tag: i for i, tag in enumerate(TAGS)}}
    return ChainForTokenClassification(ChainConfig(encoder(), **names, **options)).eval()


def batch():
    g = torch.Generator().manual_seed(1)
    words = torch.randint(20, (3, 6), generator=g)
    mask = (torch.arange(6) < torch.tensor([[6], [4], [2]])).long()
    return words, mask, torch.where(mask == 1, torch.randint(3, (3, 6), generator=g), -100)


@pytest.mark.parametrize("scheme", [None, "BIO"])
@pytest.mark.parametrize("loss", ["crf", "m3n"])
def test_saved_and_loaded(tmp_path, scheme, loss):
    tagger = model(scheme=scheme, loss=loss)
    words, mask, labels = batch()
    tagger.save_pretrained(tmp_path)
    loaded = ChainForTokenClassification.from_pretrained(tmp_path).eval()
    assert type(transformers.AutoModelForTokenClassification.from_pretrained(tmp_path)) is type(loaded)
    assert type(loaded.head.criterion) is type(tagger.head.criterion)
    assert loaded.config.id2label == dict(enumerate(TAGS))
    for name, part in tagger.state_dict().items():
        assert torch.equal(part, loaded.state_dict()[name]), name
    labels = labels.clamp(max=1)  # which BIO allows
    for ours, theirs in zip(
        tagger(words, mask, labels).to_tuple(), loaded(words, mask, labels).to_tuple(), strict=True
    ):
        assert torch.equal(ours, theirs)
    assert (tmp_path / "model.safetensors").exists()


def test_integer_masks_are_boolean_ones_and_ignored_labels_are_taken_out():
    tagger = model()
    words, mask, labels = batch()
    labels[0, 2] = -100  # the second piece of a word
    given = tagger(words, mask, labels)
    assert torch.equal(given.predictions == -100, labels == -100)
    for other in (mask.bool(), mask.int(), mask.float()):
        assert torch.equal(tagger(words, other, labels).loss, given.loss)
    said = tagger(words, mask, tag_mask=(labels != -100).long())
    assert torch.equal(said.predictions, given.predictions)
    scores = tm.ChainScores(
        given.logits, tagger.head.scorer.chain.transitions, start=tagger.head.scorer.chain.start_transitions,
        end=tagger.head.scorer.chain.end_transitions, mask=labels != -100,
    )  # fmt: skip
    torch.testing.assert_close(given.loss, tm.CRFLoss()(scores, labels))


def test_constraints_hold_after_loading(tmp_path):
    model(scheme="BIO").save_pretrained(tmp_path)
    loaded = ChainForTokenClassification.from_pretrained(tmp_path)
    assert loaded.head(torch.randn(1, 2, 16)).transitions[0, 2] == -torch.inf


def test_trained_by_the_trainer(tmp_path):
    pytest.importorskip("accelerate", reason="the extra 'integrations' is not installed")
    words, mask, labels = batch()
    rows = [{"input_ids": w, "attention_mask": m, "labels": y} for w, m, y in zip(words, mask, labels, strict=True)] * 8
    seen = {}

    def accuracy(predicted):
        (_, found), known = predicted.predictions, predicted.label_ids
        seen["shape"] = found.shape
        return {"accuracy": float((found == known)[known != -100].mean())}

    tagger = model(dropout=0.0)
    arguments = transformers.TrainingArguments(
        str(tmp_path), num_train_epochs=12, per_device_train_batch_size=6, learning_rate=5e-3, report_to=[],
        disable_tqdm=True, use_cpu=True, save_strategy="no", logging_strategy="no",
    )  # fmt: skip
    trainer = transformers.Trainer(
        tagger, arguments, train_dataset=rows, eval_dataset=rows[:3], compute_metrics=accuracy
    )
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_loss"] < before / 2
    assert after["eval_accuracy"] > 0.8
    assert seen["shape"] == (3, 6)


def test_a_configuration_without_an_encoder():
    with pytest.raises(ValueError, match="encoder: got None"):
        ChainForTokenClassification(ChainConfig(num_labels=3))
    with pytest.raises(ValueError, match="attention_mask: got shape"):
        model()(batch()[0], attention_mask=torch.ones(3, 5))


WORDS = torch.zeros(2, 5, dtype=torch.long)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "input_ids: got None; accepted are numbers of words"),
        ({"input_ids": WORDS.float()}, r"input_ids: got dtype torch\.float32"),
        ({"input_ids": WORDS[0]}, r"input_ids: got shape \(5,\); accepted is \(B, T\)"),
        ({"input_ids": WORDS[:, :0]}, r"input_ids: got shape \(2, 0\)"),
        ({"input_ids": WORDS + 20}, r"input_ids: label 20 is outside 0\.\.19"),
        (
            {"input_ids": WORDS[:, :1].expand(2, 41)},
            r"input_ids: got shape \(2, 41\); accepted are at most 40 positions",
        ),
        ({"input_ids": WORDS, "attention_mask": [[1] * 5] * 2}, "attention_mask: got list"),
        ({"input_ids": WORDS, "tag_mask": WORDS[:1]}, r"tag_mask: got shape \(1, 5\)"),
        ({"input_ids": WORDS, "labels": WORDS + 3}, r"labels: label 3 is outside 0\.\.2 \(3 classes\)"),
        ({"input_ids": WORDS, "labels": WORDS.float()}, r"labels: got dtype torch\.float32"),
        ({"input_ids": WORDS, "labels": WORDS[:, :4]}, r"labels: got shape \(2, 4\)"),
    ],
)
def test_what_comes_in_is_named(given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        model()(**given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoder": 3}, "encoder: got 3; accepted is the configuration of an encoder$"),
        ({"encoder": "bert-base-cased"}, r"encoder: got 'bert-base-cased'; .*, as AutoConfig.from_pretrained\(name\)$"),
        ({"encoder": {"vocab_size": 3}}, "encoder: has the model_type None; accepted is one that transformers knows"),
        ({"encoder": {"model_type": ["bert"]}}, r"encoder: has the model_type \['bert'\]"),
        ({"encoder": {"model_type": "bert", 3: 4}}, r"encoder: has the fields \[3\]; accepted are names"),
        (
            {"encoder": {"model_type": "bert", "hidden_size": "16"}},
            r"encoder: .*'hidden_size'.* got str .*; accepted are fields of BertConfig, each of its type",
        ),
        ({"encoder": {"model_type": "bert", "vocab_size": None}}, "encoder: .*'vocab_size'.* got NoneType"),
        ({"encoder": {"model_type": "bert", "dtype": "float99"}}, "encoder: .*float99"),
        ({"encoder": {"model_type": "bert", "id2label": 3}}, "encoder: .*accepted are fields of BertConfig"),
        (
            {"encoder": {"model_type": "bert", "hidden_sizes": 16}},
            "encoder: has the field 'hidden_sizes', not one of BertConfig; accepted is 'hidden_size'",
        ),
        (
            {"encoder": {"model_type": "gpt2", "n_layr": 2}},
            "encoder: has the field 'n_layr', .*; accepted is 'n_layer'",
        ),
        ({"loss": "crammer_singer"}, "loss: got 'crammer_singer'; accepted are 'crf'"),
        ({"scheme": "BIOS"}, "scheme: got 'BIOS'; accepted are 'BIO'"),
        ({"dropout": 2.0}, "dropout: got 2.0; accepted is a number from 0 to 1"),
        ({"num_labels": 0}, "num_labels: got 0"),
        ({"id2label": {5: "O"}}, "id2label: got {5: 'O'}; accepted is a dict from the labels 0, 1, 2"),
        ({"id2label": "OBI"}, "id2label: got 'OBI'"),
    ],
)
def test_what_a_configuration_is_of_is_named(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        ChainConfig(**{"encoder": encoder(), **options})
    with pytest.raises(TypeError, match="config: got 3; accepted is a ChainConfig"):
        ChainForTokenClassification(3)


SMALL = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"hidden_act": "nonsense"}, "encoder: KeyError, 'nonsense'; accepted is a BertConfig that transformers makes"),
        ({"num_attention_heads": 3}, "encoder: .*not a multiple of the number of attention heads"),
        ({"num_attention_heads": 0}, "encoder: ZeroDivisionError"),
        ({"hidden_size": -2}, "encoder: .*negative dimension"),
        ({"pad_token_id": 99}, "encoder: AssertionError, Padding_idx"),
        ({"model_type": "vit"}, "encoder: got ViTConfig; accepted is the configuration of an encoder of text"),
        ({"model_type": "clip"}, "encoder: got CLIPConfig"),
        ({"model_type": "t5", "d_kv": 8, "d_ff": 8}, "encoder: .*accepted are encoders of text without a decoder that"),
    ],
)
@pytest.mark.filterwarnings("ignore:encoder")
def test_an_encoder_that_no_model_can_be_made_of(fields, words):
    with pytest.raises(ValueError, match=words):
        ChainForTokenClassification(ChainConfig({"model_type": "bert"} | SMALL | fields, num_labels=3))(WORDS)


def test_a_scheme_without_tags():
    config = ChainConfig(encoder(), num_labels=3, scheme="BIO")
    with pytest.raises(ValueError, match=r"^id2label: names no tags, .*; .*id2label=dict\(enumerate\(tags\)\)\)$"):
        ChainForTokenClassification(config)


def test_fields_of_another_release_are_said_and_kept(tmp_path):
    """What a release of transformers has dropped stands in many a saved configuration."""
    with pytest.warns(UserWarning, match="encoder: BertConfig has no field gradient_checkpointing, which changes noth"):
        config = ChainConfig(encoder().to_dict() | {"gradient_checkpointing": False}, num_labels=3)
    config.encoder.hidden_sizes = 16
    config.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        again = ChainConfig.from_pretrained(tmp_path).encoder
    assert (again.gradient_checkpointing, again.hidden_sizes, again.hidden_size) == (False, 16, 16)


def test_words_of_any_integer_type_and_embedded_words():
    tagger, (words, mask, labels) = model(), batch()
    given = tagger(words, mask, labels)
    for dtype in (torch.int32, torch.int16, torch.uint8):
        assert torch.equal(tagger(words.to(dtype), mask, labels).loss, given.loss)
    embedded = tagger.get_input_embeddings()(words)
    assert torch.equal(tagger(inputs_embeds=embedded, attention_mask=mask, labels=labels).loss, given.loss)
