import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import conllu
import pytest
import torch
import torch.multiprocessing as mp

import torch_multiclass as tm
from recipes import early, load, report
from recipes.console import write_atomically
from recipes.data.conllu import Column, read
from recipes.data.treebank import TaggedSentences
from recipes.data.vocabulary import Vocabulary
from recipes.fitted import to_tag
from recipes.models.tagger import Tagger
from recipes.tag import epochs, main, spans_found, tagged
from torch_multiclass.integrations.onnx import Answers

# Lightning, jsonargparse and torch warn about each other; what the recipe itself warns about stays an error.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::jsonargparse._deprecated.JsonargparseDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]

ENDINGS = {"N": "ota", "V": "ira", "A": "eno", "D": "u"}


def split(options):
    return options.split()


SMALL = split(
    "--model.hidden 24 --model.layers 1 --model.characters 8 --model.learning_rate 0.03 "
    "--data.batch_tokens 100 --trainer.max_epochs 3"
)
HERE = split("--trainer.accelerator cpu --trainer.enable_progress_bar false")
TWO = split("--trainer.accelerator cpu --trainer.enable_progress_bar false --trainer.devices 2 --trainer.strategy ddp")


def corpus(seed, size):
    """Sentences whose tags show in the words' endings; one noun in ten must be told from the tag before."""
    rng = random.Random(seed)
    text = ""
    for i in range(size):
        text += f"# sent_id = {seed}-{i}\n"
        tag = "D"
        for n in range(1, rng.randrange(3, 9)):
            word = "".join(rng.choice("bcdfg") for _ in range(3)) + ENDINGS[tag]
            if rng.random() < 0.1:
                word, tag = ("xyz", "N") if tag == "D" else (word, tag)
            span = "B-n" if tag == "N" else "I-n" if tag == "A" else "O"
            if n == 2:
                text += "2-3\tboth\t_\t_\t_\t_\t_\t_\t_\t_\n"
            text += f"{n}\t{word}\tl{n}\t{tag}\tx{tag}\tF=1\t{n - 1}\tdep\t_\tNER={span}|Kept=yes\n"
            tag = {"D": "N", "N": rng.choice("AV"), "A": "V", "V": "D"}[tag]
        text += f"{n}.1\t_\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tag")
    for name, size in (("train", 100), ("dev", 15), ("test", 20)):
        (path / f"{name}.conllu").write_text(corpus(len(name) + size, size), encoding="utf-8")
    return path


def files(folder):
    parts = ("train", "dev", "test")
    return [word for part in parts for word in (f"--data.{part}", str(folder / f"{part}.conllu"))]


def run(folder, *args):
    """The command line, with what it writes under the folder."""
    return main([*args, f"--trainer.logger.init_args.save_dir={folder}/runs"])


@pytest.fixture(scope="module")
def fitted(folder):
    torch.manual_seed(0)
    return run(folder, "fit", *HERE, *SMALL, *files(folder))


@pytest.fixture(scope="module")
def best(fitted):
    return fitted.trainer.checkpoint_callback.best_model_path


def words(path):
    return [token for sentence in conllu.parse(path.read_text(encoding="utf-8")) for token in sentence
            if isinstance(token["id"], int)]  # fmt: skip


def test_it_learns(fitted):
    assert fitted.trainer.callback_metrics["test_accuracy"] > 0.9


def test_no_word_that_is_unknown_is_no_error(folder, best, capsys):
    """The share of none is not said; which sentences were tested is."""
    for part, unknown in (("train", False), ("test", True)):
        run(folder / "tested", "test", *HERE, "--ckpt_path", str(best), "--data.test", str(folder / f"{part}.conllu"))
        told, measured = capsys.readouterr().out.splitlines()[-2:]
        assert re.fullmatch(rf"\d+ sentences of .*{part}\.conllu for testing", told)
        assert measured.startswith("test accuracy ")
        assert ("unknown accuracy" in measured) == unknown


def test_a_small_treebank_is_gone_over_more_often(folder):
    assert [epochs(words, 640) for words in (200_000, 128_000, 64_000, 40_000, 32_000, 500)] == [10, 10, 20, 32, 40, 40]
    brief = split("--trainer.limit_train_batches 1 --trainer.limit_val_batches 1 --trainer.limit_test_batches 1")
    cli = run(folder, "fit", *HERE, *brief, "--data.batch_tokens", "1", "--model.hidden", "4", *files(folder))
    assert cli.trainer.max_epochs == cli.trainer.current_epoch == 10


def predict(folder, checkpoint, source, *more, name="tagged.conllu"):
    output = folder / "out" / name
    run(folder, "predict", "--ckpt_path", str(checkpoint), "--data.predict", str(source), "--output", str(output),
        *HERE, *more)  # fmt: skip
    return output


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([["O", "O"], ["O"]], "0 spans in 2 sentences: every token is O"),
        ([["O", "B-X", "I-X"]], "1 span in 1 sentence"),
        ([["B-X", "B-X"], ["O"]], "2 spans in 2 sentences"),
    ],
)
def test_spans_that_are_found_are_counted(rows, said):
    assert spans_found(rows) == said


def test_predict_writes_the_tags_that_test_counted(folder, fitted, best):
    blank = folder / "blank.conllu"
    text = (folder / "test.conllu").read_text(encoding="utf-8")
    blank.write_text(re.sub(r"(?m)^(\d+\t\S+\t\S+\t)[NVAD]\t", r"\1_\t", text), encoding="utf-8")
    output = predict(folder, best, blank)
    gold, ours = words(folder / "test.conllu"), words(output)
    right = sum(a["upos"] == b["upos"] for a, b in zip(gold, ours, strict=True))
    assert right / len(gold) == pytest.approx(float(fitted.trainer.callback_metrics["test_accuracy"]), abs=1e-6)
    # Everything else, comments, multiword tokens and empty nodes included, is as it was.
    untagged = re.sub(r"(?m)^(\d+\t\S+\t\S+\t)[NVAD]\t", r"\1_\t", output.read_text(encoding="utf-8"))
    assert untagged == blank.read_text(encoding="utf-8")


def test_the_page_on_other_tools_makes_a_head_of_its_chain(folder, best):
    """Written into a file by those lines it gives the tags and probabilities of the tagger."""
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
    lines = page.split("torch-multiclass tag fit")[1].split("```py\n")[1].split("```")[0].splitlines()
    kept, code = [], "\n".join(line.replace("runs/default", str(best)) for line in lines[1:])
    names = {"torch": torch, "tm": tm, "load": load, "Answers": Answers, "to_onnx": lambda *given: kept.append(given)}
    exec(code, names)
    tagger, ((answers, _, path),) = names["tagger"], kept
    assert path == "tags.onnx"
    sentences = [["bota"], ["du", "cota", "bira"]]
    data = TaggedSentences(to_tag(sentences), tagger.model.vocabulary, with_tags=False)
    batch = data[[0, 1]]
    with torch.no_grad():
        tags, probabilities = answers.eval()(names["network"].encoder(batch), batch.mask)
    for row, one in enumerate(batch.index.tolist()):
        (found,) = tagger.predict([sentences[one]])
        n = len(found)
        assert [tagger.classes[tag] for tag in tags[row, :n].tolist()] == found
        chosen = probabilities[row, :n].gather(1, tags[row, :n, None]).squeeze(1)
        torch.testing.assert_close(chosen, torch.tensor(found.probabilities))


def test_odd_sentences_are_tagged(folder, best):
    source = folder / "odd.conllu"
    line = "{}\tbcdota\t_\t_" + "\t_" * 6
    source.write_text(
        "# a comment alone\n\n" + "\n".join(line.format(i) for i in range(1, 2001)) + "\n\n" + line.format(1) + "\n",
        encoding="utf-8",
    )
    sentences = read(predict(folder, best, source, name="odd.conllu.gz"))
    assert [len(sentence.words) for sentence in sentences] == [0, 2000, 1]
    assert sentences[0].lines == ("# a comment alone",)
    assert {tag for sentence in sentences for tag in sentence.tags(Column.parse("UPOS"))} <= set(ENDINGS)
    (folder / "out" / "odd.conllu.gz").unlink()


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failing_write_leaves_the_old_file(folder, best, monkeypatch, failure):
    output = folder / "out" / "tagged.conllu"
    output.parent.mkdir(exist_ok=True)
    output.write_text("old", encoding="utf-8")

    def fail(_):
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((SystemExit, KeyboardInterrupt)):
        predict(folder, best, folder / "test.conllu")
    assert output.read_text(encoding="utf-8") == "old"
    assert [path.name for path in output.parent.iterdir()] == ["tagged.conllu"]


def test_a_killed_write_leaves_the_old_file(tmp_path):
    output = tmp_path / "tagged.conllu"
    output.write_text("old", encoding="utf-8")
    script = (
        "import os, pathlib, sys, time\n"
        "from recipes.console import write_atomically\n"
        "os.fsync = lambda _: (print('written', flush=True), time.sleep(600))\n"
        "write_atomically(pathlib.Path(sys.argv[1]), 'new' * 100_000)\n"
    )
    command, checkout = [sys.executable, "-c", script, str(output)], Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=checkout) as process:
        assert process.stdout.readline() == "written\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert output.read_text(encoding="utf-8") == "old"


def test_a_write_replaces_neither_pipe_nor_link_nor_mode(tmp_path):
    pipe, target, link = tmp_path / "pipe", tmp_path / "target", tmp_path / "link"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, "tags")
    assert os.read(reader, 10) == b"tags"
    os.close(reader)
    assert pipe.is_fifo()
    target.write_text("old", encoding="utf-8")
    target.chmod(0o600)
    link.symlink_to(target)
    write_atomically(link, "new")
    assert (link.is_symlink(), target.read_text(encoding="utf-8")) == (True, "new")
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(IsADirectoryError, match=r"output: .* is a folder"):
        write_atomically(tmp_path, "new")


def test_the_embedded_treebank_stands_in_for_no_other(best):
    with pytest.raises(SystemExit, match=r"error: train: got none, but the checkpoint was trained on .*train.conllu"):
        main(["test", *HERE, "--ckpt_path", best])


def test_a_file_without_labels_is_not_measured(folder, best):
    source = folder / "bare.conllu"
    source.write_text("1\tgato" + "\t_" * 8 + "\n\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"error: .*bare.conllu: got no tag in column UPOS"):
        main(["test", *HERE, "--ckpt_path", best, "--data.test", str(source)])


def test_an_interrupted_fit_says_how_to_go_on(folder, monkeypatch, capsys):
    epochs_seen = []

    def interrupt(self):
        epochs_seen.append(self.current_epoch)
        if len(epochs_seen) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Tagger, "on_train_epoch_start", interrupt)
    with pytest.raises(SystemExit):
        run(folder / "stopped", "fit", *HERE, *SMALL, *files(folder))
    assert re.search(r"stopped; to go on: --ckpt_path .*last\.ckpt\n", capsys.readouterr().out)


def test_a_checkpoint_is_plain_data(best, fitted):
    checkpoint = torch.load(best, weights_only=True)
    assert checkpoint["tagger"]["vocabulary"]["tags"] == sorted(ENDINGS)
    tagger = Tagger.load_from_checkpoint(best, map_location="cpu", weights_only=True).eval()
    batch = fitted.trainer.test_dataloaders.dataset[[0, 1, 2]]
    expected = fitted.model.eval()(batch)
    torch.testing.assert_close(tagger(batch).emissions, expected.emissions)


def test_a_fit_resumes(folder, fitted, best):
    last = best.replace("best.ckpt", "last.ckpt")
    steps = fitted.trainer.global_step
    with pytest.raises(ValueError, match=r"max_epochs: got 2, but .* has 3 epochs behind it"):
        early.look("tag", ["fit", "--ckpt_path", last, "--trainer.max_epochs=2"])
    again = run(folder, "fit", *HERE, *SMALL, *files(folder), "--ckpt_path", last, "--trainer.max_epochs", "4")
    assert again.trainer.global_step == steps // 3 * 4
    weights = torch.load(last, weights_only=True)["state_dict"]
    assert int(weights["average.n_averaged"]) == again.trainer.global_step
    assert again.trainer.checkpoint_callback.best_model_path == best


@pytest.mark.parametrize("loss", ["M3NLoss", "SVMStructLoss", "StructuredPerceptronLoss"])
def test_another_loss_is_one_word(folder, loss):
    cli = run(folder, "fit", *HERE, *SMALL, *files(folder), "--model.loss", loss)
    assert type(cli.model.loss) is getattr(tm, loss)
    assert cli.trainer.callback_metrics["test_accuracy"] > 0.85


def test_without_transitions_each_token_is_on_its_own(folder):
    cli = run(folder, "fit", *HERE, *SMALL, *files(folder), "--model.transitions", "false", "--trainer.max_epochs", "1")
    batch = cli.trainer.test_dataloaders.dataset[[0, 1, 2]]
    cli.model.eval()
    scores = cli.model(batch)
    logits = scores.emissions[batch.mask]
    tags = cli.model.decoder(scores)[batch.mask]
    assert torch.equal(tags, logits.argmax(-1))
    expected = torch.nn.functional.cross_entropy(logits, batch.tags[batch.mask], reduction="sum") / 3
    torch.testing.assert_close(cli.model.loss(scores, batch.tags), expected)


@pytest.mark.parametrize("constrained", [True, False])
def test_spans(folder, constrained):
    cli = run(folder, "fit", *HERE, *SMALL, *files(folder), "--model.column", "MISC:NER", "--model.scheme", "BIO",
              "--model.constrained", str(constrained).lower(), "--trainer.max_epochs", "2")  # fmt: skip
    assert 0 <= cli.trainer.callback_metrics["test_span_f1"] <= 1
    assert cli.trainer.checkpoint_callback.monitor == "val_span_f1"
    output = predict(folder, cli.trainer.checkpoint_callback.best_model_path, folder / "test.conllu")
    assert all(token["misc"]["Kept"] == "yes" for token in words(output))
    for sentence in conllu.parse(output.read_text(encoding="utf-8")):
        tags = [token["misc"]["NER"] for token in sentence if isinstance(token["id"], int)]
        if constrained:
            assert not any(tag.startswith("I") and last == "O" for last, tag in zip(["O", *tags], tags, strict=False))


def test_no_way_to_tag_is_an_error_with_its_place(folder):
    sentences = read(folder / "test.conllu")
    vocabulary = Vocabulary.learn(sentences, "UPOS")
    with pytest.raises(ValueError, match=r"test.conllu:2: no sequence of 2 of the tags A, D, N, V is well formed"):
        tagged(sentences, [(0, [-100, -100])], vocabulary)


def test_one_tag_only_and_a_tag_unseen_in_training(folder):
    one = folder / "one.conllu"
    one.write_text(re.sub(r"(?m)^(\d+\t\S+\t\S+\t)[NVAD]\t", r"\1X\t", corpus(1, 20)), encoding="utf-8")
    cli = run(folder, "fit", *HERE, *SMALL, "--data.train", str(one), "--data.test", str(folder / "test.conllu"),
              "--trainer.max_epochs", "1")  # fmt: skip
    assert cli.trainer.checkpoint_callback.best_model_score == 1
    assert cli.trainer.callback_metrics["test_accuracy"] == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("fit --data.train {}/none.conllu", r"error: there is no file .*none.conllu; accepted is"),
        ("fit --data.train {}/train.conllu --data.test {}/none.conllu", r"error: there is no file .*none.conllu"),
        (
            "fit --data.train {}/train.conllu --model.loss WestonWatkinsLoss",
            r"error: loss: got WestonWatkinsLoss; .*M3N",
        ),
        ("fit --data.train {}/train.conllu --model.hidden 0", r"error: hidden: got 0"),
        ("fit --data.train {}/train.conllu --model.dropout 1.5", r"error: dropout: got 1\.5"),
        ("fit --data.train {}/train.conllu --model.averaging 1.5", r"error: averaging: got 1\.5"),
        (
            "predict --ckpt_path {}/test.conllu",
            r"error: ckpt_path: .*test.conllu cannot be read .* checkpoint of tag",
        ),
        ("fit --data.train {}/train.conllu --model.column WORDS", r"error: column: got 'WORDS'"),
        ("fit --data.train {}/train.conllu --model.column DEPS", r"train.conllu: got no tag in column DEPS"),
        ("fit --data.train {}/train.conllu --model.scheme BIO", r"error: tags: 'A' is not a BIO tag"),
        (
            "fit --data.train {}/train.conllu --model.loss no.Loss",
            r"error: loss: there is no class no.Loss; accepted are CRFLoss, M3NLoss, SVMStructLoss, StructuredPer",
        ),
        (
            "fit --data.train {}/train.conllu --model.loss recipes.tag.Tagger",
            r"error: loss: recipes.tag.Tagger is no subclass of Loss; accepted are CRFLoss, M3NLoss, SVMS",
        ),
        (
            "fit --data.train {}/train.conllu --model.loss M3NLoss --model.loss.cost [[0,1],[1,0]]",
            r"error: cost: is 2 x 2; accepted is 4 x 4, in the order A, D, N, V, or costs by name, --model.cost$",
        ),
        (
            'fit --data.train {}/train.conllu --model.loss M3NLoss --model.cost {"N":{"B":5}}',
            r"error: cost: got B; the classes are A, D, N, V$",
        ),
        ("predict --data.predict {}/test.conllu", r"error: ckpt_path: got none"),
    ],
)
def test_a_mistake_is_one_line(folder, args, message):
    with pytest.raises(SystemExit, match=message):
        run(folder, *split(args.replace("{}", str(folder))), *HERE)


def _process(rank, folder, checkpoint, port):
    torch.set_num_threads(1)
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
        LOCAL_WORLD_SIZE="2", GROUP_RANK="0", TORCHELASTIC_RUN_ID="test",
    )  # fmt: skip
    trained = ["--ckpt_path", checkpoint]
    cli = run(folder / "two", "test", *TWO, *trained, *files(folder), "--data.batch_tokens", "8")
    if rank == 0:
        measured = {name: float(value) for name, value in cli.trainer.callback_metrics.items()}
        torch.save(measured, folder / "measured.pt")
    run(folder / "two", "predict", *TWO, *trained,
        "--data.predict", str(folder / "test.conllu"), "--output", str(folder / "two.conllu"))  # fmt: skip
    run(folder / "two", "fit", *TWO, *SMALL, *files(folder), "--trainer.max_epochs", "1")


def test_two_processes(folder, fitted, best):
    port = 20_000 + os.getpid() % 20_000
    mp.start_processes(_process, (folder, best, port), nprocs=2, start_method="spawn")
    measured = torch.load(folder / "measured.pt")
    for name in ("test_accuracy", "test_sentence_accuracy", "test_unknown_accuracy"):
        assert measured[name] == pytest.approx(float(fitted.trainer.callback_metrics[name]), abs=1e-6)
    assert (folder / "two.conllu").read_bytes() == predict(folder, best, folder / "test.conllu").read_bytes()


def test_text_is_tagged_with_probabilities_and_the_next_best(folder, best):
    source = folder / "notes.txt"
    source.write_text("bcdu dfgota bbbira, fffu cccota\n\nggota\n", encoding="utf-8")
    output = predict(folder, best, source, "--probabilities", "true", "--k_best", "3", name="notes.conll")
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines() if line]
    assert [row[0] for row in rows] == ["bcdu", "dfgota", "bbbira", ",", "fffu", "cccota", "ggota"]
    assert all(len(row) == 8 and {row[1], *row[4::2]} <= set(ENDINGS) and 0 < float(row[2]) <= 1 for row in rows)
    ranked = [tuple(row[at] for row in rows[:6]) for at in (1, 4, 6)]
    assert len(set(ranked)) == 3
    first, second, third = ({row[at] for row in rows[:6]} for at in (3, 5, 7))  # the same on every line
    assert len(first) == len(second) == len(third) == 1
    assert 0 > float(*first) >= float(*second) >= float(*third)
    (folder / "out" / "notes.conll").unlink()


def test_columns_and_json_lines_train_alike(folder):
    found = {}
    for name in ("conll", "jsonl"):
        for part in ("train", "dev", "test"):
            sentences = [s for s in read(folder / f"{part}.conllu") if s.words]
            pairs = [list(zip(s.forms, s.tags(Column.parse("UPOS")), strict=True)) for s in sentences]
            text = "".join("".join(f"{w} {t}\n" for w, t in pair) + "\n" for pair in pairs)
            if name == "jsonl":
                text = "".join(json.dumps({"tokens": s.forms, "tags": s.tags(None)}) + "\n" for s in sentences)
            (folder / f"{part}.{name}").write_text(text, encoding="utf-8")
        options = [f"--data.{part}={folder / part}.{name}" for part in ("train", "dev", "test")]
        cli = run(folder, "fit", *HERE, *SMALL, *options, "--trainer.max_epochs", "1")
        found[name] = float(cli.trainer.callback_metrics["test_accuracy"])
    assert found["conll"] == found["jsonl"]


def test_a_file_with_its_tags_elsewhere_than_the_training_had_them(folder, fitted, best, capsys):
    """They are read where a command says, by whatever the model was taught."""
    found = conllu.parse((folder / "test.conllu").read_text(encoding="utf-8"))
    rows = [[token for token in sentence if isinstance(token["id"], int)] for sentence in found]
    entries = [{"tokens": [one["form"] for one in row], "pos": [one["upos"] for one in row]} for row in rows]
    moved = folder / "moved.jsonl"
    moved.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    own = ["--ckpt_path", str(best), "--model.column", "pos"]
    capsys.readouterr()
    for column, file in (("UPOS", "test.conllu"), ("pos", "moved.jsonl")):
        run(folder / "moved", "test", *HERE, *own[:3], column, "--data.test", str(folder / file))
    first, second = (line for line in capsys.readouterr().out.splitlines() if line.startswith("test accuracy"))
    assert first == second
    run(folder / "moved", "validate", *HERE, *own, "--data.dev", str(moved))
    assert "val accuracy" in capsys.readouterr().out
    output = predict(folder, best, moved, *own[2:], name="moved.jsonl")
    assert {*json.loads(output.read_text(encoding="utf-8").splitlines()[0])} == {"tokens", "pos"}
    report.main([str(best), f"--data={moved}", "--label=pos", f"--output={folder}/moved_report"])
    with pytest.raises(SystemExit, match=r"column: got 'tags', .* accepted are pos, as --model.column pos$"):
        run(folder / "moved", "test", *HERE, *own[:2], "--data.test", str(moved))
    with pytest.raises(SystemExit, match=r"model.column: got pos; .* was trained with the default"):
        run(folder / "moved", "fit", *HERE, *files(folder), *own)


@pytest.fixture(scope="module")
def spans(folder):
    """The weights of a tagger of spans."""
    options = ["--model.column", "MISC:NER", "--model.scheme", "BIO", "--trainer.max_epochs", "1"]
    cli = run(folder / "memory", "fit", *HERE, *SMALL, *files(folder), *options)
    return cli.trainer.checkpoint_callback.best_model_path


def test_sentences_in_memory_are_tagged_with_spans_and_probabilities(folder, spans):
    fitted = load(spans)
    source = folder / "memory.txt"
    source.write_text("bcdu dfgota, bbbira\nggota\n", encoding="utf-8")
    ours = fitted.predict(["bcdu dfgota, bbbira", ["ggota"], []])
    assert ours[:2] == fitted.predict(source) == fitted.predict(str(source))
    first, second, empty = ours
    assert (first.words, second.words, empty) == (["bcdu", "dfgota", ",", "bbbira"], ["ggota"], [])
    assert first.spans == tm.tag_spans(list(first), "BIO")
    output = predict(folder, spans, source, "--probabilities", "true")
    written = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines() if line]
    assert [row[1] for row in written] == [*first, *second]
    chances = [*first.probabilities, *second.probabilities]
    assert [float(row[2]) for row in written] == pytest.approx(chances, abs=1e-5)
    assert "vocabulary" not in fitted.facts
    assert fitted.facts["words"] > 0
    source = folder / "memory.conll"
    source.write_text("-DOCSTART- O\n\nbcdu O\n\n# a comment\n\nggota B-n\nbbira O\n", encoding="utf-8")
    assert [one.words for one in fitted.predict(source)] == [["bcdu"], ["ggota", "bbira"]]  # as many as test counts
    (folder / "memory.jsonl").write_text('{"tokens": []}\n{"tokens": ["ggota"]}\n', encoding="utf-8")
    assert [one.words for one in fitted.predict(folder / "memory.jsonl")] == [["ggota"]]
    (one,) = fitted.predict([["ggota"]], k_best=2)
    assert (one, len(one.k_best), second.k_best, second.log_probability) == (second, 1, [], None)
    ((other, less),) = one.k_best
    assert other != one
    assert less < one.log_probability < 0
    with pytest.raises(
        TypeError, match=r"^predict: got .*'best'; accepted is predict\(sentences\), by name also k_best"
    ):
        fitted.predict(source, best=2)
    with pytest.raises(ValueError, match=r"^k_best: got 0; accepted is a whole number >= 1"):
        fitted.predict(source, k_best=0)
    for given, error, words in [
        ("Mr Smith", FileNotFoundError, r"sentences: there is no file 'Mr Smith'; accepted is a file, or a list"),
        ("x" * 5000, FileNotFoundError, r"sentences: there is no file"),
        ([3], TypeError, r"sentences: entry 0 is 3; accepted is a sentence or the list of its words"),
        ([["a"], ["b", None]], TypeError, r"sentences: entry 1 is"),
    ]:
        with pytest.raises(error, match=words):
            fitted.predict(given)


@pytest.mark.parametrize(("command", "part"), [("test", "test"), ("validate", "dev"), ("report", "test")])
def test_a_file_that_a_kept_model_is_measured_by_is_looked_at(folder, spans, capsys, command, part):
    """Its scheme as that of a fit's files, and its tags, of which the model knows not all."""

    def measure(name, given):
        (folder / name).write_text(given, encoding="utf-8")
        if command == "report":
            report.main([str(spans), f"--data={folder / name}", f"--output={folder / 'measured'}"])
        else:
            run(folder, command, *HERE, "--ckpt_path", str(spans), f"--data.{part}={folder / name}")

    text = corpus(5, 40)
    capsys.readouterr()
    measure("org.conllu", text.replace("NER=B-n", "NER=B-org", 3))
    shown = capsys.readouterr().err
    assert re.findall(r"note: .*", shown) == [
        f"note: {part}: 1 tag is unknown to the model: B-org ({folder / 'org.conllu'}:2)"
    ]
    with pytest.raises(SystemExit, match=r"error: scheme: got BIO, which .* fits IOB1: accepted is a file in BIO, int"):
        measure("iob1.conllu", text.replace("NER=B-n", "NER=I-n"))


def test_costs_by_the_names_of_the_tags(folder):
    """The order of a matrix is that of the classes of the kept model."""
    (folder / "cost.csv").write_text("true,V,N,D,A\nN,5,0,1,1\nA,1,1,1,0\nD,1,1,0,1\nV,0,1,1,1\n")
    matrix = "--model.loss.cost=[[0,1,1,1],[1,0,1,1],[1,1,0,5],[1,1,1,0]]"
    for cost in (matrix, '--model.cost={"N": {"V": 5}}', f"--model.cost={folder}/cost.csv"):
        few = ["--trainer.max_epochs=1", "--model.loss=M3NLoss", cost]
        cli = run(folder / "costs", "fit", *HERE, *SMALL, *files(folder), *few)
        best = cli.trainer.checkpoint_callback.best_model_path
        kept = load(best)
        rows = [[float(a != b) + 4 * ((a, b) == ("N", "V")) for b in kept.classes] for a in kept.classes]
        assert cli.model.loss.cost.matrix.tolist() == rows
    (folder / "cost.csv").unlink()  # which training alone needs
    run(folder / "costs", "test", *HERE, *files(folder), "--ckpt_path", best)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (tm.M3NLoss(cost="hamming"), "cost: M3NLoss has a cost of its own; accepted is CRFLoss, M3NLoss or SVMStructL"),
        (tm.StructuredPerceptronLoss(), "cost: StructuredPerceptronLoss has no costs; accepted is CRFLoss, M3NLoss"),
    ],
)
def test_a_loss_that_takes_no_costs_by_name(loss, message):
    with pytest.raises(ValueError, match=message):
        Tagger(loss, cost={"N": {"V": 5.0}})


def test_a_fit_that_fails_leaves_no_folder(tmp_path):
    broken = tmp_path / "broken.conllu"
    broken.write_text(corpus(0, 40).replace("NER=B-n", "NER=I-n"), encoding="utf-8")
    options = ["--data.train", str(broken), "--model.column", "MISC:NER", "--model.scheme", "BIO"]
    with pytest.raises(SystemExit, match=r"error: scheme: got BIO, which .* fits IOB1: accepted is --model.sch"):
        run(tmp_path, "fit", *HERE, *SMALL, *options)
    with pytest.raises(SystemExit, match=r"error: cost: got B; the classes are I-n, O"):
        run(tmp_path, "fit", *HERE, *SMALL, *options[:4], '--model.cost={"B": {"O": 5}}')
    assert [path.name for path in tmp_path.iterdir()] == ["broken.conllu"]
