"""What the page shows of the order that was found, with curves whose answers are known."""

import math

import numpy as np
import pytest
from made_jobs import ENV, chain, diamond, make_job
from test_page_browser import node, slide, until
from test_page_server import serving

from mastery import Curriculum, Task
from mastery.cli.page import write_report
from mastery.page import assemble, data
from mastery.page.places import Place
from mastery.page.server import Server
from mastery.rundir.metrics import Metrics
from mastery.rundir.store import Store

# the mean over both seeds of each task's mastery, by point
DIAMOND = np.array(
    [
        [0.2, 0.6, 0.9, 0.9, 0.9, 0.2, 0.9, 0.9],  # first: at 1; forgotten at 5; again at 6
        [0.0, 0.1, 0.7, 0.7, 0.5, 0.4, 0.3, 0.29],  # left: at 2; forgotten at 7, not before
        [0.0, 0.0, 0.2, 0.3, 0.5, 0.5, 0.8, 0.8],  # right: at 6
        [0.0, 0.0, 0.0, 0.0, 0.6, 0.9, 0.9, 0.9],  # last: at 4, so before right
    ]
).T
OPEN, AGREES, CONTRADICTS = "open", "agrees", "contradicts"
# by point: the places of first, left, right and last; the states of first → left,
# first → right, left → last and right → last
FOUND = {
    0: (["", "", "", ""], [OPEN, OPEN, OPEN, OPEN]),
    1: (["1", "", "", ""], [OPEN, OPEN, OPEN, OPEN]),
    2: (["1", "2", "", ""], [AGREES, OPEN, OPEN, OPEN]),
    3: (["1", "2", "", ""], [AGREES, OPEN, OPEN, OPEN]),
    4: (["1", "2", "", "3"], [AGREES, OPEN, AGREES, CONTRADICTS]),
    5: (["", "1", "", "2"], [AGREES, OPEN, AGREES, CONTRADICTS]),  # first is forgotten
    6: (["3", "1", "3", "2"], [AGREES, AGREES, AGREES, CONTRADICTS]),  # first and right together
    7: (["2", "", "2", "1"], [OPEN, AGREES, AGREES, CONTRADICTS]),  # left is forgotten
}


def without_order(names):
    return Curriculum([Task(name, settings=ENV) for name in names], name="without order")


def record(store, runs, point, means, ended=None):
    """One more point: of each pair of runs the first is above the mean, the second below."""
    apart = np.minimum(np.minimum(means, 1 - means), 0.1)
    sign = np.where(np.arange(runs) % 2, -1, 1)[:, None] if runs > 1 else np.zeros((1, 1))
    mastery = (means + sign * apart)[None]
    shape = mastery.shape
    metrics = Metrics(
        np.full(shape, 1 / len(means)), mastery, np.ones(shape, int), mastery,
        np.full(shape, 16), progress=np.zeros(shape),
    )  # fmt: skip
    store.record(point + 1, 0.5 * point, metrics, None, None, ended)


def write(directory, curriculum, curves, programs=("auto",), seeds=2):
    """A job with these curves (points, tasks) in every program; gives its directory."""
    job = make_job(curriculum, programs, seeds=seeds, points=len(curves))
    with Store(directory, job) as store:
        store.begin_session("", 0)
        for point, means in enumerate(curves):
            record(store, len(job.runs), point, means)
    return directory


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return write(tmp_path_factory.mktemp("found") / "job", diamond(), DIAMOND)


@pytest.fixture(scope="module")
def report(job):
    write_report([job], job.parent / "report.html")
    return (job.parent / "report.html").as_uri()


@pytest.fixture(scope="module")
def watched(job):
    with serving(Server([job], port=0)) as server:
        yield server.url


@pytest.fixture(params=["file", "server"])
def address(request):
    return request.getfixturevalue("report" if request.param == "file" else "watched")


def badges(page):
    """What is seen of each task's badge."""
    return [x.text_content() if x.is_visible() else "" for x in page.locator("#graph .badge").all()]


def edges(page):
    lines = page.locator("#graph .edge:not(.back, .on)").all()
    return [line.get_attribute("class").removeprefix("edge ") for line in lines]


def found(page):
    return page.text_content("#why-order")


def test_a_task_is_learned_from_0_6_and_forgotten_below_0_3(watched, visit):
    page = visit(watched)

    def spans(*mastery):
        spans_of = "(mastery) => import('/model.js').then((model) => model.spansOf(mastery))"
        return page.evaluate(spans_of, mastery)

    ever = math.inf
    assert spans() == []
    assert spans(0.0, 0.59, 0.3) == []
    assert spans(0.0, 0.6, 0.9) == [[1, ever]]
    assert spans(0.6, 0.3, 0.45) == [[0, ever]]  # 0.3 is not below 0.3
    assert spans(0.7, 0.29, 0.59, 0.6) == [[0, 1], [3, ever]]
    assert spans(0.7, 0.1, 0.7, 0.1) == [[0, 1], [2, 3]]
    assert spans(None, None, 0.7, None, 0.7) == [[2, ever]]  # what is missing changes nothing
    assert spans(0.7, None, 0.2) == [[0, 2]]


def test_an_edge_is_judged_when_its_task_is_learned(watched, visit):
    page = visit(watched)

    def state(before, task, point=9):
        order = "([spans, point]) => import('/model.js').then((model) => "
        order += "model.orderAt(spans, [[0, 1]], point))"
        return page.evaluate(order, [[before, task], point])["edges"]

    ever = math.inf
    assert state([], []) == [OPEN]
    assert state([[3, ever]], []) == [OPEN]
    assert state([[3, ever]], [[5, ever]]) == [AGREES]
    assert state([[3, ever]], [[3, ever]]) == [AGREES]
    assert state([], [[5, ever]]) == [CONTRADICTS]
    assert state([[6, ever]], [[5, ever]]) == [CONTRADICTS]
    assert state([[3, 7]], [[5, ever]]) == [AGREES]  # forgotten later: no sign of a wrong order
    assert state([[3, 4]], [[5, ever]]) == [CONTRADICTS]  # forgotten before
    assert state([[3, ever]], [[5, 8]]) == [OPEN]  # the task itself is forgotten
    assert state([[3, ever]], [[2, 4], [5, ever]]) == [AGREES]  # and learned again, after it
    assert [state([[6, ever]], [[5, ever]], p) for p in (4, 5)] == [[OPEN], [CONTRADICTS]]


def test_badges_and_edges_follow_the_slider(address, visit):
    page = visit(address)
    assert badges(page) == FOUND[7][0]
    for point in (4, 0, 6, 1, 3, 2, 5, 7):
        slide(page, point)
        assert (badges(page), edges(page)) == FOUND[point]
    slide(page, 6)
    names = {0: "3rd", 1: "1st", 2: "3rd", 3: "2nd"}
    for task, place in names.items():
        assert node(page, task).get_attribute("aria-label").endswith(f", learned {place}")
    node(page, 3).hover()
    assert "learned2ndat 80 frames" in page.text_content("#tip")


@pytest.mark.parametrize("dark", [False, True])
def test_the_states_of_edges_look_different(report, visit, dark):
    page = visit(report, dark=dark)
    slide(page, 4)

    def looks(state, part):
        line = page.locator(f"{part} .edge.{state}").first
        return line.evaluate("(x) => [getComputedStyle(x)].map((s) => [s.stroke, "
                             "s.strokeDasharray !== 'none'])[0]")  # fmt: skip

    shown = [looks(state, "#graph") for state in (AGREES, CONTRADICTS, OPEN)]
    assert [dashed for _, dashed in shown] == [False, True, False]
    assert len({colour for colour, _ in shown}) == 3
    assert [looks(state, "#legend") for state in (AGREES, CONTRADICTS, OPEN)] == shown
    assert page.locator("#legend").inner_text().split("\n")[-4:] == [
        "place in the order found (learned: M ≥ 0.6)",
        "given edge that agrees",
        "contradicts",
        "open: not learned yet",
    ]


ALL_OPEN = "Of 4 given edges none agrees with what was seen, none contradicts it, 4 are open."
MOST = "Of 4 given edges 2 agree with what was seen, 1 contradicts it, 1 is open."
SENTENCES = [  # point, task, what is said
    (0, None, ALL_OPEN),
    (0, 0, f"first is not learned yet. {ALL_OPEN}"),
    (0, 2, f"right is not learned yet; its given predecessor is not learned. {ALL_OPEN}"),
    (1, 2, f"right is not learned yet; its given predecessor is learned. {ALL_OPEN}"),
    (1, 3, f"last is not learned yet; none of its 2 given predecessors is learned. {ALL_OPEN}"),
    (2, 1, "left was learned 2nd of 4, at 48 frames; its given predecessor was learned by then. "
     "Of 4 given edges 1 agrees with what was seen, none contradicts it, 3 are open."),
    (4, 3, "last was learned 3rd of 4, at 80 frames; 1 of its 2 given predecessors was learned by "
     f"then. {MOST}"),
    (5, 0, f"first was learned, and forgotten at 96 frames. {MOST}"),
    (6, None, "Of 4 given edges 3 agree with what was seen, 1 contradicts it, none is open."),
    (7, 1, "left was learned, and forgotten at 128 frames; its given predecessor is learned. "
     f"{MOST}"),
]  # fmt: skip


def test_the_sentences(report, visit):
    page = visit(report)
    for point, task, said in SENTENCES:
        page.keyboard.press("Escape")
        slide(page, point)
        if task is not None:
            node(page, task).click()
        assert found(page) == said


@pytest.mark.parametrize(
    ("curves", "said"),
    [
        ([[0.0, 0.0]], "The one given edge is open."),
        ([[0.9, 0.0], [0.9, 0.9]], "The one given edge agrees with what was seen."),
        ([[0.0, 0.9]], "The one given edge contradicts what was seen."),
    ],
)
def test_one_edge(tmp_path, visit, curves, said):
    write_report([write(tmp_path / "job", chain(2), np.array(curves))], tmp_path / "page.html")
    assert found(visit((tmp_path / "page.html").as_uri())) == said


def test_without_an_order_the_learned_tasks_are_listed(tmp_path, visit):
    names = ("<b>a", "b", "c")
    curves = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.8], [0.7, 0.1, 0.8]])
    write_report([write(tmp_path / "job", without_order(names), curves)], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    assert found(page) == "No order was given; learned so far: c, <b>a."
    assert badges(page) == ["2", "", "1"]
    node(page, 2).click()
    assert found(page).startswith("c was learned 1st of 3, at 32 frames. No order was given;")
    slide(page, 0)
    node(page, 2).click()
    assert found(page) == "No order was given; nothing is learned yet."
    assert "agrees" not in page.text_content("#legend")
    assert "M_Anc" not in page.text_content("#why-bars")  # there are no ancestors


@pytest.mark.parametrize("width", [1280, 400])
def test_tasks_without_an_order_fill_rows(tmp_path, visit, width):
    curves = np.linspace(0, 1, 30)[None]
    names = [f"t{i}" for i in range(30)]
    write_report([write(tmp_path / "job", without_order(names), curves)], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri(), width)
    box = page.locator("#graph svg").bounding_box()
    assert box["width"] <= width
    assert box["height"] < (500 if width == 1280 else 1200)
    shown = [badge for badge in badges(page) if badge]
    assert shown == ["1"] * 12  # 0.6 and more: 18/29 = 0.62 to 29/29, all at the first point


def test_a_curriculum_with_very_many_tasks_has_no_badges(tmp_path, visit):
    curves = np.full((1, 70), 0.9)
    write_report([write(tmp_path / "job", chain(70), curves, seeds=1)], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    assert page.locator(".badge").count() == 0
    assert "place in the order" not in page.text_content("#legend")
    assert edges(page) == [AGREES] * 69
    assert found(page).startswith("Of 69 given edges 69 agree with what was seen")


def test_it_is_the_mean_over_the_seeds_that_are_chosen(report, visit):
    page = visit(report)
    slide(page, 1)
    assert badges(page) == ["1", "", "", ""]
    page.locator("label.chip:has([data-key='0'])").click()  # 0.7; the other seed has 0.5
    assert badges(page) == ["", "", "", ""]
    page.locator("label.chip:has([data-key='0'])").click()
    assert badges(page) == ["1", "", "", ""]


def test_mastery_that_is_missing_at_first_is_not_learned(tmp_path, job, visit):
    place = Place(job, "job")
    curves = data.job_curves(place)
    curves["mastery"][0][0][:3] = [None] * 3  # of one seed only
    curves["mastery"][1][3][:5] = [None] * 5
    assemble.write(tmp_path / "page.html", "missing", [data.job_entry(place)], [curves])
    page = visit((tmp_path / "page.html").as_uri())
    slide(page, 2)
    assert badges(page) == ["", "1", "", ""]
    assert edges(page) == [CONTRADICTS, OPEN, OPEN, OPEN]
    slide(page, 5)  # first is learned at 3 and forgotten at 5, last is learned at 5
    assert badges(page) == ["", "1", "", "2"]


def test_what_was_found_follows_a_job_that_trains(tmp_path, visit):
    job = make_job(diamond(), ("auto",), seeds=2, points=len(DIAMOND))
    with (
        Store(tmp_path / "job", job) as store,
        serving(Server([tmp_path / "job"], port=0)) as server,
    ):
        store.begin_session("", 0)
        record(store, 2, 0, DIAMOND[0])
        page = visit(server.url)
        assert (badges(page), edges(page)) == FOUND[0]
        for point in range(1, 5):
            record(store, 2, point, DIAMOND[point])
            until(page, f"$('now').textContent.startsWith('{16 * (point + 1)} of')")
            assert (badges(page), edges(page)) == FOUND[point]
        assert found(page) == MOST
        slide(page, 1)  # what comes later does not change an earlier time
        record(store, 2, 5, DIAMOND[5])
        until(page, "$('time').max === '5'")
        assert (badges(page), edges(page)) == FOUND[1]


def test_each_program_says_what_it_does(tmp_path, visit):
    programs = ("auto", "auto:dark=0.0,hint=0.0", "learnability", "uniform", "mr")
    write_report([write(tmp_path / "job", diamond(), DIAMOND, programs)], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    own = (
        "It sets aside a task that has made no progress for long, even if its M is low. It does "
        "not use equation 1, and its own estimate of mastery can differ from M."
    )
    others = "this program does not look at progress or order as equation 1 does."
    expected = {
        "auto": "this program needs no order and takes the given one as a hint. It trains on what "
        "answers to training; while nothing succeeds, it trains on one task at a time, in blocks. "
        f"{own}",
        "auto:dark=0.0,hint=0.0": "this program needs no order and ignores the given one. It "
        f"trains on what answers to training. {own}",
        "learnability": others,
        "uniform": others,
    }
    for name, said in expected.items():
        page.get_by_role("radio", name=name, exact=True).first.click()
        assert page.text_content("#why-text") == f"After 128 frames, {name}: {said}"
        heads = page.locator("#why-bars thead th").all_text_contents()
        assert heads == [
                "task", "masteryM", "given ancestorsM_Anc, the least",
                "probabilityat this point", "until herethe mean",
            ]  # fmt: skip
        assert "passes no attention on" in page.text_content("#curriculum-text")
        assert "eq. 2" not in page.text_content("#legend")
        assert badges(page) == FOUND[7][0]
        assert found(page).startswith("Of 4 given edges 2 agree")
    page.get_by_role("radio", name="mr", exact=True).first.click()
    assert "eq. 2" in page.text_content("#legend")
    assert "the product of three factors" in page.text_content("#why-text")
    assert found(page).startswith("Of 4 given edges 2 agree")


def test_ordinals(watched, visit):
    numbers = [1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 23, 101, 111, 112]
    ordinal = "(all) => import('/text.js').then(({ ordinal }) => all.map(ordinal))"
    assert visit(watched).evaluate(ordinal, numbers) == [
        "1st", "2nd", "3rd", "4th", "10th", "11th", "12th", "13th", "21st", "22nd", "23rd",
        "101st", "111th", "112th",
    ]  # fmt: skip
