"""The command that runs every recipe."""

import pytest

import torch_multiclass_recipes
from recipes import start


def test_every_recipe_is_listed(capsys):
    torch_multiclass_recipes.main([])
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in start.RECIPES)


def test_no_such_recipe_is_one_line():
    with pytest.raises(SystemExit, match=r"error: there is no recipe clasify; accepted are classify, tag"):
        torch_multiclass_recipes.main(["clasify", "fit"])


def test_interrupts_and_bad_input_are_one_line(capsys):
    def interrupted():
        raise KeyboardInterrupt

    def wrong():
        raise ValueError("further up") from TypeError("path: got 3; accepted is a path")

    with pytest.raises(SystemExit) as ended:
        start.main(interrupted)
    assert (ended.value.code, capsys.readouterr().err) == (130, "stopped\n")
    with pytest.raises(SystemExit, match=r"^error: path: got 3; accepted is a path$"):
        start.main(wrong)


def test_a_published_configuration_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(start.configured(["fit", "--config", "digits_ecoc", "--config=recipes/configs/pos_crf.yaml", "--x=1"]))
    assert [found[0], found[1], found[4]] == ["fit", "--config", "--x=1"]
    assert found[2].endswith("/recipes/configs/digits_ecoc.yaml")
    assert found[3].startswith("--config=/")
    (tmp_path / "digits_ecoc").write_text("")
    assert list(start.configured(["--config", "digits_ecoc"])) == ["--config", "digits_ecoc"]
