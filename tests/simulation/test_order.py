"""The order that the learner needs may differ from the one that the programs see."""

import json
import runpy
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from command import mastery
from hypothesis import given, settings
from hypothesis import strategies as st

from mastery import Curriculum, MasteryError, Task
from mastery.curriculum import shipped
from mastery.simulation.order import _turned, order_note, true_order, without_order
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


def drawn_orders(order, curriculum, seeds):
    """How often each order comes up, as text: `ba bc` has the edges b → a and b → c."""
    return Counter(
        " ".join(sorted(a + b for a, b in edges(true_order(f"{order}:{seed}", curriculum))))
        for seed in range(seeds)
    )


def test_one_edge_is_turned_by_hand():
    # a → b → c: either edge can be turned
    counts = drawn_orders("one", CHAIN, 400)
    assert set(counts) == {"ba bc", "ab cb"}
    # 200 each on average; the standard deviation is √(400 · 1/2 · 1/2) = 10
    assert all(abs(count - 200) < 5 * 10 for count in counts.values())
    # half of two edges is one
    assert set(drawn_orders("half", CHAIN, 20)) == set(counts)
    assert edges(true_order("one", CHAIN)) == edges(true_order("one:0", CHAIN))
    assert true_order("half", CHAIN).name == "half:0"


def test_an_edge_that_would_close_a_cycle_is_not_turned():
    """In a → b → c with a → c, the edge c → a would close a cycle until another edge is turned."""
    triangle = Curriculum([Task("a"), Task("b", after=("a",)), Task("c", after=("a", "b"))])
    assert set(drawn_orders("one", triangle, 40)) == {"ac ba bc", "ab ac cb"}
    # two of three: after b → a the next can only be c → a (b → a → c blocks c → b); after c → b
    # it can only be c → a as well (a → c → b blocks b → a)
    assert set(drawn_orders("half", triangle, 40)) == {"ba bc ca", "ab ca cb"}


def test_half_of_a_single_edge_is_that_edge():
    pair = Curriculum([Task("a"), Task("b", after=("a",))])
    for order in ("half:1", "one:1", "reversed"):
        assert edges(true_order(order, pair)) == {("b", "a")}


def check_turned(curriculum, order, number):
    """`number` edges are turned, the others are unchanged, and there is no cycle."""
    wrong = true_order(order, curriculum)
    assert set(wrong.names) == set(curriculum.names)
    assert nx.is_directed_acyclic_graph(graph(wrong))
    lost, new = edges(curriculum) - edges(wrong), edges(wrong) - edges(curriculum)
    assert len(lost) == number
    assert new == {(after, before) for before, after in lost}
    assert edges(true_order(order, curriculum)) == edges(wrong)


@pytest.mark.parametrize("name", [name for name in shipped() if len(Curriculum.load(name).edges)])
def test_edges_of_the_shipped_curricula_are_turned(name):
    curriculum = Curriculum.load(name)
    for seed in range(5):
        check_turned(curriculum, f"one:{seed}", 1)
        check_turned(curriculum, f"half:{seed}", -(-len(curriculum.edges) // 2))  # rounded up


@st.composite
def orders(draw):
    """A curriculum with any edges from earlier to later tasks; at least one."""
    n = draw(st.integers(2, 9))
    pairs = [(i, j) for j in range(n) for i in range(j)]
    chosen = draw(st.sets(st.sampled_from(pairs), min_size=1))
    return Curriculum(
        Task(f"t{j}", after=tuple(f"t{i}" for i in range(j) if (i, j) in chosen)) for j in range(n)
    )


@given(orders(), st.integers(0, 10**6))
def test_turned_edges(curriculum, seed):
    check_turned(curriculum, f"one:{seed}", 1)
    check_turned(curriculum, f"half:{seed}", -(-len(curriculum.edges) // 2))
    # any number can be turned, up to all of them
    given_edges = curriculum.edges.tolist()
    every = _turned(given_edges, len(given_edges), np.random.default_rng(seed))
    assert every == [[after, before] for before, after in given_edges]


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


@pytest.mark.parametrize(
    "order", ["", "half:x", "one:", "shufled", "shuffled:-1", "given:1", 3, None]
)
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
    for order in ("reversed", "half", "one:1", "shuffled:2"):
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


@given(st.sampled_from([3, 20, 200]), st.sampled_from([0.02, 0.1, 0.5]), st.integers(0, 99))
@settings(max_examples=20)
def test_hidden_orders_of_the_benchmark(n, share, seed):
    benchmark = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "orders.py"))
    hidden, seen = benchmark["hidden"], benchmark["seen"]
    first = max(round(share * n), 1)
    for shape, roots in (("chain", first), ("layers", first), ("independent", n)):
        true = hidden(shape, n, share, seed)
        drawn = graph(true)
        assert true == hidden(shape, n, share, seed)
        assert sum(degree == 0 for _, degree in drawn.in_degree()) == roots
        most = {"chain": 1, "layers": 3, "independent": 0}[shape]
        assert max(degree for _, degree in drawn.in_degree()) <= most
        deep = {"chain": -(-n // roots) - 1, "layers": round(n ** (1 / 3)), "independent": 0}
        assert nx.dag_longest_path_length(drawn) == deep[shape]
        # without the order, neither names nor positions say anything about it
        unordered = seen("none", true)
        assert unordered.names == tuple(f"task-{i:04d}" for i in range(n))
        assert edges(seen("reversed", true) if roots < n else true) == set(drawn.reverse().edges)
