"""`mastery benchmark reasoning`: the job, the curves that ship, and what the docs say of them."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mastery.cli import app
from mastery.comparison import curves
from mastery.comparison.jobs import ENTRIES, JOBS, label
from mastery.comparison.measures import rows
from mastery.comparison.orders import ordered
from mastery.comparison.report import main_table, sentence, times_table, training_table
from mastery.curriculum import Curriculum
from mastery.errors import MasteryError
from mastery.programs.recipe import Recipe
from mastery.simulation.order import true_order

SHIPPED = Path(curves.__file__).parent / "data" / "reasoning.npz"
PAGE = Path(__file__).parents[2] / "docs" / "reasoning.md"


@pytest.fixture(scope="module")
def shipped():
    return curves.load(SHIPPED)


@pytest.fixture(scope="module")
def found(shipped):
    return rows(shipped)


def test_all_programs_train_ten_seeds_that_no_setting_was_tuned_on(shipped):
    job = JOBS["reasoning"].job()
    assert len(job.runs) == len(shipped.programs) == 10 * len(ENTRIES)
    assert {run.label for run in job.runs} == set(shipped.programs) == {*map(label, ENTRIES)}
    assert set(shipped.seeds) == {run.seed for run in job.runs} == set(range(5000, 5010))
    assert shipped.tasks.tolist() == list(job.curriculum.names)
    for name in ("width", "layers", "heads", "learning_rate", "prompts", "group", "pretrain_rare"):
        assert shipped.about["settings"][name] == getattr(job.settings, name)


def test_shares_and_tokens_of_the_shipped_curves_make_sense(shipped):
    assert shipped.share.sum(2) == pytest.approx(1, abs=0.01)
    assert (np.diff(shipped.generated, axis=0) > 0).all()
    assert (shipped.trained < shipped.generated).all()
    # a completion has 1 to 10 symbols
    each = shipped.generated[-1] / shipped.completions[-1]
    assert each.min() > 1
    assert each.max() < 10


@pytest.mark.parametrize("table", [main_table, training_table, times_table])
def test_the_tables_of_the_docs_are_those_of_the_curves(shipped, found, table):
    made = table(shipped if table is times_table else found).markdown()
    assert made in PAGE.read_text()


def test_the_docs_and_the_readme_say_what_is_saved(found):
    by_program = {row.program: row for row in found}
    text = re.sub(r"\s+", " ", (PAGE.parents[1] / "README.md").read_text() + PAGE.read_text())
    for program, words in (
        ("learnability", "`learnability` saves {:.0f} % of the tokens"),
        ("auto:hint=0", "`auto` {:.0f} % ({:.0f} … {:.0f})"),
        ("mr", "`mr` {:.0f} % ({:.0f} … {:.0f})"),
    ):
        name = str(Recipe.parse(program))
        assert words.format(*(100 * x for x in by_program[name].saved)) in text
    assert "without an order `auto` saves" in sentence(found)


def test_redraw_needs_no_training(tmp_path):
    result = CliRunner().invoke(
        app, ["benchmark", "reasoning", "--redraw", "--out", str(tmp_path / "page")]
    )
    assert result.exit_code == 0, result.output
    assert "Of the tokens that `uniform` needs" in result.output
    page = (tmp_path / "page" / "index.html").read_text()
    assert page.count("<svg") == 2
    assert "learnability" in page


@pytest.mark.parametrize("scale", [0, -1, 1.5])
def test_a_scale_must_be_a_share(scale):
    with pytest.raises(MasteryError, match="it must be more than 0, and at most 1"):
        JOBS["reasoning"].job(scale)


def test_a_small_scale_has_the_small_model():
    job = JOBS["reasoning"].job(0.01)
    assert job.settings.width == 64
    assert job.frames == 8000


def test_unknown_comparisons_are_refused(tmp_path):
    result = CliRunner().invoke(app, ["benchmark", "reasonin", "--out", str(tmp_path / "x")])
    assert "there is no comparison 'reasonin'; did you mean 'reasoning'?" in str(result.exception)


def test_a_program_with_another_order_follows_that_one():
    """With the same order it is the program itself; reversed, it begins with the last tasks."""
    curriculum = Curriculum.load("reasoning-reverse")
    noise = np.zeros((3, 4))
    plain = Recipe.parse("mr").build(curriculum)
    expected = plain.distribution(plain.init(noise))
    backwards = ordered(curriculum, "mr", "reversed")
    found = backwards.distribution(backwards.init(noise))
    assert expected.argmax() == 0
    assert found == pytest.approx(expected[::-1])
    other = Recipe.parse("mr").build(true_order("reversed", curriculum))
    assert sorted(found) == pytest.approx(sorted(other.distribution(other.init(noise))))


@pytest.mark.slow
def test_the_whole_comparison_scaled_down(tmp_path):
    result = CliRunner().invoke(
        app, ["benchmark", "reasoning", "--scale", "0.0005", "--out", str(tmp_path / "page")]
    )
    assert result.exit_code == 0, result.output
    kept = curves.load(tmp_path / "page" / "curves" / "reasoning.npz")
    assert len(kept.runs) == len(ENTRIES)
