import json
from pathlib import Path

import pytest

from recipes import results_tag, tag
from recipes.crfsuite import measure, word_features
from recipes.data.conllu import read

pytestmark = pytest.mark.slow


def test_the_plan_has_every_line_of_the_table():
    runs = results_tag.plan(Path("data"), [("Basque", "eu.conllu")])
    seeds = {}
    for run in runs:
        seeds.setdefault((run.data, run.method), []).append(run.seed)
    assert [len(seeds["Porttinari", method]) for method in results_tag.TAGGERS] == [3, 3, 3, 1, 1]
    assert {data for data, _ in seeds} == {"Porttinari", "English EWT", "WNUT-17", "Basque"}
    assert all((data, results_tag.CRFSUITE) in seeds for data, _ in seeds)
    assert len({run.record for run in runs}) == len(runs)
    assert {run.data for run in results_tag.plan(None, [])} == {"Porttinari"}


def test_finished_runs_are_not_repeated_and_make_the_table(tmp_path, monkeypatch, capsys):
    readme = tmp_path / "README.md"
    readme.write_text("before <!-- tagging: begin -->old<!-- tagging: end --> after", encoding="utf-8")
    monkeypatch.setattr(results_tag, "KEPT", tmp_path)
    monkeypatch.setattr(results_tag, "README", readme)
    for run in results_tag.plan(None, []):
        result = {"test_accuracy": 0.98 + run.seed / 100, "test_sentence_accuracy": 0.7, "seconds": 9, "device": "cpu"}
        run.record.write_text(json.dumps(result), encoding="utf-8")
    results_tag.main()
    assert "12 runs, 0 of them to do" in capsys.readouterr().out
    text = readme.read_text(encoding="utf-8")
    assert text.startswith("before <!-- tagging: begin -->\n|")
    assert text.endswith("<!-- tagging: end --> after")
    assert "| Porttinari | CRF | 3 | 99.00 ± 1.00 | 70.00 ± 0.00 |  |  | 9 (cpu) |" in text
    assert "| Porttinari | soft-max of each token | 1 | 98.00 | 70.00 |" in text


@pytest.mark.parametrize("config", [*results_tag.TAGGERS.values(), *results_tag.SPANS.values()])
@pytest.mark.filterwarnings("ignore::jsonargparse._deprecated.JsonargparseDeprecationWarning")
def test_every_configuration_is_accepted(config, capsys):
    with pytest.raises(SystemExit, match="0"):
        tag.main(["fit", f"--config={results_tag.HERE / 'configs' / config}.yaml", "--print_config"])
    assert f"name: {config}\n" in capsys.readouterr().out


def test_crfsuite_learns_from_the_same_sentences(tmp_path):
    line = "{}\t{}\t_\t{}" + "\t_" * 6 + "\n"
    path = tmp_path / "a.conllu"
    pairs = [("um", "D"), ("gato", "N"), ("dorme", "V")]
    path.write_text("".join(line.format(i, *pair) for i, pair in enumerate(pairs, 1)) + "\n", encoding="utf-8")
    sentences = read(path)
    result = measure(sentences * 5, sentences, "UPOS")
    assert (result["test_accuracy"], result["test_sentence_accuracy"], result["test_unknown_accuracy"]) == (1, 1, 0)
    assert {"w=gato", "s=xx", "e3=ato", "-1w=um", "1e=rme", "2=none"} <= set(word_features(sentences[0].forms)[1])
