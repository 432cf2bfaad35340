"""The marks of claims, and the areas of both pages; tests/paper/test_page.py opens the page."""

import json
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import mastery.page
from mastery.paper import scorecard
from mastery.paper.claims import WORLDS, judge
from mastery.paper.curves import with_baselines
from mastery.paper.interactive import kept_curves, kept_entry
from mastery.paper.page import DATA, _area, read_shipped
from mastery.paper.verdicts import Verdict, above, below, holding, within
from mastery.statistics import Estimate

SURE, STRADDLES, FAILS = Estimate(0.7, 0.6, 0.8), Estimate(0.5, 0.4, 0.6), Estimate(0.3, 0.2, 0.4)


def test_a_part_agrees_if_its_whole_interval_does():
    agrees = [above("x", e, 0.5).agrees for e in (SURE, STRADDLES, FAILS)]
    assert agrees == [True, None, False]
    agrees = [below("x", e, 0.5).agrees for e in (SURE, STRADDLES, FAILS)]
    assert agrees == [False, None, True]
    agrees = [within("x", e, 0.55, 0.85).agrees for e in (SURE, STRADDLES, FAILS)]
    assert agrees == [True, None, False]
    agrees = [holding("x", e, 0.5).agrees for e in (SURE, STRADDLES, FAILS)]
    assert agrees == [False, True, False]


@pytest.mark.parametrize(
    ("holds", "estimates", "mark"),
    [
        (None, [], "≈"),  # open
        (True, [], "✓"),
        (False, [], "✗"),
        (True, [SURE, SURE], "✓"),
        (True, [SURE, STRADDLES], "≈"),  # it holds, but other seeds might say no
        (False, [SURE, STRADDLES], "≈"),  # it fails, but other seeds might say yes
        (False, [SURE, STRADDLES, FAILS], "✗"),  # one part that surely fails is enough
        (False, [SURE], "✗"),  # it fails for another reason
    ],
)
def test_marks(holds, estimates, mark):
    parts = tuple(above("x", e, 0.5) for e in estimates)
    assert Verdict(holds, "", parts).mark == mark


@pytest.fixture(scope="module")
def shipped():
    return read_shipped(DATA)


def test_the_tally_counts_the_papers_own_claims(shipped):
    """Each is counted once a world: twelve of reinforcement learning, one of addition."""
    judgements = judge(shipped)
    counts = scorecard.tally(judgements)
    assert {world: sum(of.values()) for world, of in counts.items()} == {
        "2018": 12, "today": 12, "addition": 1,
    }  # fmt: skip
    for suffix, world in WORLDS.items():
        marks = [j.verdicts[world].mark for j in judgements if world in j.verdicts]
        assert counts[suffix[1:]] == {mark: marks.count(mark) for mark in "✓✗≈"}
        # whoever is marked ✓ is reproduced by the rules, and whoever is marked ✗ is not
        assert all(
            j.verdicts[world].holds is (j.verdicts[world].mark == "✓")
            for j in judgements
            if world in j.verdicts and j.verdicts[world].mark != "≈"
        )
    head, rows = scorecard.table(judgements)
    assert len(rows) == 15
    assert all(len(row) == len(head) for row in rows)


def test_a_bar_has_its_interval_and_threshold_in_place():
    picture = scorecard.bars([above("KC <x>", Estimate(0.5, 0.25, 0.75), 0.5)])
    assert 'aria-label="KC &lt;x&gt;: 0.50 (0.25 … 0.75), threshold 0.5"' in picture
    # 120 pixels from 0 to 1, after an edge of 6
    assert '<line class="limit" x1="66.0" x2="66.0"' in picture
    assert '<line x1="36.0" x2="96.0"' in picture
    assert '<circle cx="66.0"' in picture
    centred = scorecard.bars([below("x", Estimate(-0.1, -0.2, 0.1), 0.0)])
    assert '<line class="limit" x1="66.0"' in centred
    assert ">−0.2</text>" in centred
    assert scorecard.bars([]) == ""


@pytest.fixture
def modules():
    """The address of the page's modules."""
    folder = Path(mastery.page.__file__).parent / "static"

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))  # how soon it ends
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


AREAS = """async (given) => {
  const { page, jobGroups } = await import('/model.js');
  const { scoreTable } = await import('/comparison.js');
  const { interquartileMean } = await import('/statistics.js');
  const { entry, curves } = JSON.parse(given);
  page.index = { jobs: [entry] };
  page.group = [...jobGroups().keys()][0];
  return entry.programs.map((program, i) => {
    const runs = entry.runs.flatMap(([own], run) => (own === i ? [run] : []));
    const scores = scoreTable({ curves, runs, job: entry }, 'area');
    return [program.label, interquartileMean(scores).toFixed(2)];
  });
}"""


def test_both_pages_print_the_same_areas(shipped, modules, browser):
    """paper.html by Python, interactive.html by its own script: every job and program."""
    context = browser.new_context()
    seen = context.new_page()
    seen.goto(modules + "text.js")
    compared = 0
    for name in shipped:
        kept = with_baselines(shipped, name)
        found = kept_curves(kept)
        curves = {"frames": found["frames"], "returns": found["returns"].tolist()}
        given = json.dumps({"entry": kept_entry(name, kept), "curves": curves})
        areas = seen.evaluate(AREAS, re.sub(r"\bNaN\b", "null", given))
        for program, area in areas:
            assert (name, program, area) == (name, program, f"{_area(kept, program).value:.2f}")
            compared += 1
    assert compared > 150
    context.close()
