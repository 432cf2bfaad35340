"""The order that the learner needs may differ from the one that the programs see."""

import json
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from command import mastery
from hypothesis import given
from hypothesis import strategies as st

from mastery import Curriculum, MasteryError, Task
from mastery.simulation.order import order_note, true_order, without_order
from mastery.simulation.page import simulation_page
from mastery.simulation.simulate import Learner, _efforts, _world, simulate

MAZE = Curriculum.load("obstructed-maze")
CHAIN = Curriculum([Task("a"), Task("b", after=("a",)), Task("c", after=("b",))], name="chain")


def graph(curriculum):
    """The order as a networkx graph, from the tasks' own `after`."""
    drawn = nx.DiGraph()
    drawn.add_nodes_from(curriculum.names)
    drawn.add_edges_from((before, task.name) for task in curriculum for before in task.after)
    return drawn


def before(curriculum, order):
    learner = Learner(order=order)
    return _world(curriculum, learner, _efforts(curriculum, learner)).before


def edges(curriculum):
    return set(graph(curriculum).edges)


# another order of the maze's tasks, as text that does not come from this package
OTHER = nx.DiGraph()
OTHER.add_nodes_from(reversed(MAZE.names))
nx.add_path(OTHER, [MAZE.names[i] for i in (4, 0, 3)])
OTHER.add_edges_from([(MAZE.names[5], MAZE.names[3]), (MAZE.names[5], MAZE.names[1])])


def written(folder, ending):
    path = folder / f"true.{ending}"
    if ending == "toml":
        lines = [
            f'[tasks."{name}"]\nafter = {json.dumps(list(OTHER.predecessors(name)))}\n'
            for name in OTHER
        ]
        path.write_text("".join(lines))
    else:
        nodes = {name: {"id": "x", "min": 0, "max": 1} for name in OTHER}
        path.write_text(json.dumps({"nodes": nodes, "edges": list(OTHER.edges)}))
    return path


@pytest.mark.parametrize("form", ["toml", "json", "text", "object"])
def test_prerequisites_are_those_of_the_true_order(form, tmp_path):
    order = written(tmp_path, "json" if form == "json" else "toml")
    if form == "text":
        order = str(order)
    if form == "object":
        order = Curriculum.load(order)
    # networkx has 1 at [before, after], the learner at [after, before]
    expected = nx.to_numpy_array(OTHER, nodelist=MAZE.names).T
    np.testing.assert_array_equal(before(MAZE, order), expected)


def test_the_words_by_hand():
    assert before(CHAIN, "given").tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert before(CHAIN, "reversed").tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert before(CHAIN, "none").tolist() == [[0, 0, 0]] * 3
    shipped = before(without_order(MAZE), "obstructed-maze")
    np.testing.assert_array_equal(shipped, before(MAZE, "given"))
    assert Learner() == Learner(order="given")


def test_reversed_is_the_reverse_of_networkx():
    assert edges(true_order("reversed", MAZE)) == set(graph(MAZE).reverse().edges)


@given(st.integers(0, 10**6))
def test_shuffled_is_the_same_graph_with_other_names(seed):
    shuffled = true_order(f"shuffled:{seed}", MAZE)
    assert nx.is_isomorphic(graph(shuffled), graph(MAZE))
    assert set(shuffled.names) == set(MAZE.names)
    assert edges(shuffled) == edges(true_order(f"shuffled:{seed}", MAZE))


def test_every_shuffle_is_equally_likely():
    counts = Counter(
        frozenset(edges(true_order(f"shuffled:{seed}", CHAIN))) for seed in range(1200)
    )
    assert len(counts) == 6  # a chain of three has 3! orders
    # 200 each on average; the standard deviation is √(1200 · 1/6 · 5/6) = 13
    assert all(abs(count - 200) < 5 * 13 for count in counts.values())
    assert edges(true_order("shuffled", CHAIN)) == edges(true_order("shuffled:0", CHAIN))


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_hidden_prerequisites(n, seed):
    tasks = Curriculum(Task(f"t{i}") for i in range(n))
    hidden = true_order(f"hidden:{seed}", tasks)
    drawn = graph(hidden)
    assert nx.is_directed_acyclic_graph(drawn)
    needs = Counter(degree for _, degree in drawn.in_degree())
    assert needs[0] == -(-n // 5)  # a fifth, rounded up
    assert set(needs) <= {0, 1, 2}
    assert edges(true_order(f"hidden:{seed}", tasks)) == set(drawn.edges)


def test_hidden_prerequisites_ignore_the_curriculums_and_depend_on_the_seed():
    first, again, other = (
        edges(true_order(f"hidden:{seed}", tasks))
        for seed, tasks in ((3, MAZE), (3, without_order(MAZE)), (4, MAZE))
    )
    assert first == again != other
    needs = Counter(
        d for s in range(200) for _, d in graph(true_order(f"hidden:{s}", MAZE)).in_degree()
    )
    # six tasks: two need nothing; four need one or two, with equal chance: 400 ± √(800)/2 each
    assert needs[0] == 400
    assert abs(needs[1] - 400) < 5 * 14
    assert needs[1] + needs[2] == 800


def test_without_prerequisites_every_task_is_learnable_at_once():
    learner = Learner(order="none", mastered=0.9)
    for program in ("uniform", "target"):
        (outcome,) = simulate(MAZE, [program], seeds=2, steps=50, learner=learner)
        assert outcome.spent[2] == 0  # not yet learnable
    (given_order,) = simulate(MAZE, ["target"], seeds=2, steps=50)
    assert given_order.spent[2] == 1


def test_the_programs_see_the_curriculum_as_given():
    """`sequential` trains on the curriculum's first task, whatever the learner needs."""
    steps = 20
    for order in ("given", "reversed"):
        (outcome,) = simulate(
            CHAIN,
            ["sequential"],
            seeds=1,
            steps=steps,
            learner=Learner(order=order, rehearsal=0, forgetting=0, effort=1e5, episodes=4),
        )
        assert outcome.skill[-1, 0, 0] > 0
        assert (outcome.skill[-1, 0, 1:] == 0).all()
        # the first task needs nothing in the given order; in the other it needs one of skill 0
        assert outcome.spent.tolist() == ([0, 1, 0] if order == "given" else [0, 0, 1])


def test_a_wrong_order_misleads_the_program_that_trusts_it():
    tasks = Curriculum.load("key-corridor")
    right, wrong = (
        {o.program: o.median for o in simulate(tasks, ["mr", "uniform"], seeds=5, learner=learner)}
        for learner in (Learner(), Learner(order="reversed"))
    )
    assert right["mr"] < right["uniform"]
    assert wrong["mr"] > wrong["uniform"]
    # a chain the other way round is a chain: who sees no order takes as long, but for luck
    assert wrong["uniform"] == pytest.approx(right["uniform"], rel=0.05)


def test_a_program_that_knows_no_order():
    known = Curriculum.load("blocked-unlock-pickup")
    unknown = without_order(known)
    assert unknown.names == known.names
    assert not len(unknown.edges)
    (told,) = simulate(known, ["uniform"], seeds=3, steps=300)
    (untold,) = simulate(unknown, ["uniform"], seeds=3, steps=300, learner=Learner(order=known))
    np.testing.assert_array_equal(told.skill, untold.skill)  # uniform uses no order
    (told,) = simulate(known, ["mr"], seeds=3)
    (untold,) = simulate(unknown, ["mr"], seeds=3, learner=Learner(order=known))
    # mr with the order hardly trains on tasks that are not learnable yet
    assert told.spent[2] < 0.05 < 0.2 < untold.spent[2]


@pytest.mark.parametrize("order", ["", "shufled", "shuffled:", "shuffled:-1", "given:1", 3, None])
def test_an_unknown_order(order):
    with pytest.raises(MasteryError, match=r"order is .*; choose from given, none, reversed"):
        Learner(order=order)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (Curriculum([Task("a"), Task("b")], name="o"), "'o' has no task 'c', which 'chain' has"),
        (
            Curriculum([Task(name) for name in ("a", "b", "c", "task")], name="o"),
            "'o' has the task 'task', which 'chain' does not have",
        ),
        ("key-corridor", "'key-corridor' has no task 'a'"),
        ("no/such.toml", "cannot read no/such.toml"),
    ],
)
def test_orders_that_do_not_fit(order, message):
    with pytest.raises(MasteryError, match=message):
        simulate(CHAIN, ["mr"], learner=Learner(order=order))


def test_where_there_are_no_edges_none_can_be_rearranged():
    for order in ("reversed", "shuffled:2"):
        with pytest.raises(MasteryError, match="has no edges; hidden:SEED draws"):
            simulate(without_order(CHAIN), ["mr"], learner=Learner(order=order))


def test_the_note_counts_the_edges():
    assert order_note(true_order("given", CHAIN), CHAIN) == ""
    other = Curriculum([Task("b"), Task("a"), Task("c", after=("b", "a"))], name="mine")
    assert order_note(other, CHAIN) == (
        "The learner's order differs from the curriculum's: mine (2 edges, 1 of them among the "
        "curriculum's 2)."
    )
    assert order_note(other, without_order(CHAIN)) == (
        "The programs know no order. The learner's: mine (2 edges)."
    )


def test_the_page_draws_the_order_that_the_learner_needs():
    for order, drawn in (("given", 3), ("reversed", 4)):
        learner = Learner(order=order)
        outcomes = simulate(CHAIN, ["mr"], seeds=1, steps=5, learner=learner)
        html = simulation_page(CHAIN, outcomes, learner, "x")
        assert html.count("<svg") == drawn
        assert ("differs from the curriculum" in html) == (order == "reversed")
        assert f"order {order}." in html


def said(*arguments, rc=0):
    """What a command prints, without line breaks."""
    return " ".join(mastery("simulate", *arguments, rc=rc).split())


def test_the_command_line_takes_an_order(tmp_path):
    few = ("--against", "", "--seeds", 1, "--steps", 5, "--backend", "numpy")
    text = said(
        "obstructed-maze", *few, "--learner", f"noise=0.5,order={written(tmp_path, 'toml')}"
    )
    assert "true.toml(4edges," in text.replace(" ", "")  # a long path is broken into lines
    text = said("obstructed-maze", *few, "--learner", "order=reversed")
    assert "differs from the curriculum's: reversed" in text
    assert "order" not in said("obstructed-maze", *few).lower()
    page = tmp_path / "page.html"
    text = said("key-corridor", *few, "--without-order", "--learner", "order=shuffled", "-o", page)
    assert "The programs know no order. The learner's: shuffled:0 (5 edges)." in text
    html = page.read_text()
    assert "The programs know no order." in html
    assert html.count("<svg") == 4
    help_text = said("--help")
    for word in ("hidden:SEED", "shuffled:SEED", "--without-order"):
        assert word in help_text


def test_the_command_line_explains_a_wrong_order(tmp_path):
    for order, message in (
        ("shufled", "choose from given"),
        ("obstructed-maze", "has no task 'S3R1'"),
        (tmp_path / "none.toml", "cannot read"),
    ):
        error = mastery("simulate", "key-corridor", "--learner", f"order={order}", rc=2)
        assert message in error
        assert error.startswith("mastery: ")
        assert error.count("\n") == 1
