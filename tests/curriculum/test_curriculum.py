"""Curricula: made, read, checked. Every kind of bad input gets one clear line."""

import copy
import json
import pickle
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import curricula

from mastery import Curriculum, CurriculumError, Task
from mastery.curriculum import shipped


def edges(curriculum):
    return {(before, task.name) for task in curriculum for before in task.after}


def test_what_ships():
    assert shipped() == [
        "addition-3",
        "addition-5",
        "addition-9",
        "blocked-unlock-pickup",
        "key-corridor",
        "obstructed-maze",
        "obstructed-maze-full",
        "reasoning",
        "reasoning-reverse",
    ]
    sizes = {name: len(Curriculum.load(name)) for name in shipped()}
    assert list(sizes.values()) == [3, 5, 9, 3, 6, 6, 9, 48, 4]


def test_the_papers_curricula_have_its_bounds_and_edges():
    maze = Curriculum.load("obstructed-maze")
    assert edges(maze) == {
        ("1Dl", "1Dlh"),
        ("1Dl", "2Dl"),
        ("1Dlh", "1Dlhb"),
        ("1Dlh", "2Dlh"),
        ("2Dl", "2Dlh"),
        ("1Dlhb", "2Dlhb"),
        ("2Dlh", "2Dlhb"),
    }
    assert edges(Curriculum.load("obstructed-maze-full")) == edges(maze) | {
        ("2Dlhb", "1Q"),
        ("1Q", "2Q"),
        ("2Q", "Full"),
    }
    corridor = Curriculum.load("key-corridor")
    names = ["S3R1", "S3R2", "S3R3", "S4R3", "S5R3", "S6R3"]
    assert edges(corridor) == set(pairwise(names))
    for curriculum in (maze, corridor, Curriculum.load("blocked-unlock-pickup")):
        assert {(t.minimum, t.maximum) for t in curriculum} == {(0.0, 0.5)}
    assert corridor["S3R1"].settings == {"env": "MiniGrid-KeyCorridorS3R1-v0"}
    nine = Curriculum.load("addition-9")
    assert {(t.minimum, t.maximum) for t in nine} == {(0.0, 1.0)}
    assert [t.settings["digits"] for t in nine] == list(range(1, 10))


@given(curricula())
def test_tasks_are_in_topological_order_with_networkx_levels(curriculum):
    graph = nx.DiGraph()
    graph.add_nodes_from(curriculum.names)
    graph.add_edges_from(edges(curriculum))
    level = {}
    for k, generation in enumerate(nx.topological_generations(graph)):
        level |= dict.fromkeys(generation, k)
    assert [level[name] for name in curriculum.names] == curriculum.level.tolist()
    assert (curriculum.edges[:, 0] < curriculum.edges[:, 1]).all()
    assert (np.diff(curriculum.level) >= 0).all()


@given(curricula())
def test_a_curriculum_survives_toml_and_plain_data(curriculum):
    assert Curriculum.from_toml(curriculum.to_toml()) == curriculum
    assert Curriculum.from_dict(json.loads(json.dumps(curriculum.to_dict()))) == curriculum


@given(
    st.text(min_size=1).filter(lambda name: name.strip() and name.isprintable()),
    st.dictionaries(st.text(), st.one_of(st.text(), st.integers(-9, 9), st.booleans()), max_size=3),
)
def test_any_name_and_settings_survive_toml(name, settings):
    try:
        (name + "".join(settings) + "".join(map(str, settings.values()))).encode()
    except UnicodeEncodeError:
        return  # half a surrogate pair is no text
    curriculum = Curriculum([Task(name, settings=settings)])
    assert Curriculum.from_toml(curriculum.to_toml()) == curriculum


def test_the_authors_json_is_read_and_a_task_without_edge_is_kept():
    text = """{"nodes": {"A": {"id": "Env-A", "min": 0, "max": 0.5},
                        "B": {"id": "Env-B", "min": 0, "max": 0.5},
                        "lonely": {"id": "Env-C", "min": 0, "max": 1}},
              "edges": [["A", "B"]]}"""
    curriculum = Curriculum.from_json(text)
    assert set(curriculum.names) == {"A", "B", "lonely"}
    assert curriculum["B"] == Task("B", 0.0, 0.5, ("A",), {"env": "Env-B"})


def test_files_are_read_by_their_ending(tmp_path):
    toml, js = tmp_path / "c.toml", tmp_path / "c.json"
    toml.write_text('[tasks.a]\n[tasks.b]\nafter = ["a"]\n')
    js.write_text('{"nodes": {"a": {}, "b": {}}, "edges": [["a", "b"]]}')
    assert Curriculum.load(toml) == Curriculum.load(str(js))
    assert Curriculum.load(toml).name == "c"


def test_a_random_curriculum_is_layered_and_repeatable():
    curriculum = Curriculum.load("random-1000")
    assert len(curriculum) == 1000
    assert curriculum.level[-1] == 9
    assert 2 < len(curriculum.edges) / 900 < 3.2
    assert curriculum == Curriculum.random(1000, seed=0) != Curriculum.random(1000, seed=1)


def task(**changes):
    return Task(**{"name": "x", **changes})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Curriculum([]), "no task"),
        (lambda: Curriculum([Task("a"), Task("a")]), "two tasks are named 'a'"),
        (lambda: Curriculum(["a"]), "contains 'a', which is not a Task"),
        (lambda: Curriculum(None), "tasks is None; it must be a list of Task"),
        (lambda: Curriculum.load(None), "must be a name or a path"),
        (lambda: task(maximum=10**5000), "maximum is too large"),
        (lambda: task(name=""), "name is ''; it must be one line"),
        (lambda: task(name=3), "name is 3; it must be one line"),
        (lambda: task(minimum=1, maximum=1), "minimum 1 is not below maximum 1"),
        (lambda: task(minimum=float("nan")), "minimum is nan; it must be a finite number"),
        (lambda: task(maximum=float("nan")), "maximum is nan"),
        (lambda: task(maximum=float("inf")), "maximum is inf"),
        (lambda: task(maximum="1"), "maximum is '1'"),
        (lambda: task(maximum=10**400), "maximum is too large"),
        (lambda: task(maximum=1e300), "maximum is 1e+300"),
        (lambda: task(name="two\nlines"), "one line of printable text"),
        (lambda: task(name="half\ud800"), "one line of printable text"),
        (lambda: task(after=5), "after is 5; it must be a list of names"),
        (lambda: task(after=(1,)), "must be a list of names"),
        (lambda: task(settings={"a": [object()]}), "settings.a[0] is <object"),
        (lambda: task(settings={3: 1}), "settings has the key 3, which is not text"),
        (lambda: Curriculum.from_toml("[tasks.a]\nsettings = { d = 2020-01-01 }"), "settings.d is"),
        (lambda: Curriculum.from_toml("[tasks.a]\nmaximum = " + "9" * 400), "maximum is too large"),
        (lambda: Curriculum.from_toml("[tasks.a]\nmaximum = " + "9" * 5000), "not valid TOML"),
        (lambda: Curriculum.from_json('{"nodes": ' + "9" * 5000 + "}"), "not valid JSON"),
        (lambda: Curriculum.from_json("[" * 100_000), "nested too deeply"),
        (lambda: Curriculum.from_toml("a = " + "[" * 100_000), "nested too deeply"),
        (lambda: Curriculum([Task("a", settings={"x": None})]).to_toml(), "TOML cannot represent"),
        (
            lambda: Curriculum.random(5, predecessors=0),
            "predecessors is 0; both must be at least 1",
        ),
        (lambda: task(after=("x",)), "'x' lists itself in after"),
        (lambda: task(after="y"), "must be a list of names, e.g. after=('y',)"),
        (
            lambda: Curriculum([Task("S3R3"), Task("S4R3", after=("S3R4",))]),
            "task 'S4R3' lists 'S3R4' in after, and there is no such task; did you mean 'S3R3'?",
        ),
        (
            lambda: Curriculum(
                [
                    Task("z"),
                    Task("a", after=("z", "c")),
                    Task("b", after=("a",)),
                    Task("c", after=("b",)),
                ]
            ),
            "cycle: a → b → c → a",
        ),
        (lambda: Curriculum.load("key-coridor"), "did you mean 'key-corridor'?"),
        (lambda: Curriculum.load("missing.toml"), "cannot read missing.toml: No such file"),
        (lambda: Curriculum.from_toml("[tasks.a]\nminimum = \n"), "line 2"),
        (lambda: Curriculum.from_toml("[tasks.a]\n[tasks.a]\n"), "line 2"),
        (lambda: Curriculum.from_toml("[tasks.a]\nmaximun = 1.0\n"), "did you mean 'maximum'?"),
        (
            lambda: Curriculum.from_toml("[task.a]\n"),
            "unknown key 'task'; did you mean 'tasks'?",
        ),
        (
            lambda: Curriculum.from_toml("[defaults]\nmaxmum = 1\n[tasks.a]\n"),
            "did you mean 'maximum'",
        ),
        (lambda: Curriculum.from_toml("tasks = 3"), "must be a table"),
        (lambda: Curriculum.from_toml('[tasks.a]\nafter = "b"\n'), "must be a list of names"),
        (lambda: Curriculum.from_toml("[tasks.a]\nmaximum = nan\n"), "maximum is nan"),
        (lambda: Curriculum.from_toml("[tasks.a]\nsettings = 3\n"), "settings is 3"),
        (lambda: Curriculum.from_toml(""), "no task"),
        (lambda: Curriculum.from_json("{"), "line 1"),
        (lambda: Curriculum.from_json('{"nodes": {"a": {}, "a": {}}}'), "'a' appears twice"),
        (lambda: Curriculum.from_json('{"nodes": {"a": {"mn": 0}}}'), "did you mean 'min'?"),
        (lambda: Curriculum.from_json('{"nodes": {"a": {}}, "edges": [["a"]]}'), "not a pair"),
        (
            lambda: Curriculum.from_json('{"nodes": {"abc": {}}, "edges": [["abc", "abd"]]}'),
            "no such node; did you mean 'abc'?",
        ),
        (lambda: Curriculum([Task("abc")])["abd"], "did you mean 'abc'?"),
    ],
)
def test_bad_input_gets_one_clear_line(make, message):
    with pytest.raises(CurriculumError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[tasks.a]\nminimum = 2.0\n")
    with pytest.raises(CurriculumError, match=r"mine\.toml: task 'a': minimum 2 is not below"):
        Curriculum.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CurriculumError, match="not a UTF-8 text file"):
        Curriculum.load(path)


def test_a_long_chain_is_no_problem():
    names = [f"t{i}" for i in range(20_000)]
    chain = Curriculum(
        Task(name, after=(names[i - 1],) if i else ()) for i, name in enumerate(names)
    )
    assert chain.level[-1] == 19_999
    tail = [
        Task("t0", after=(names[-1],)),
        *(Task(n, after=(names[i],)) for i, n in enumerate(names[1:])),
    ]
    with pytest.raises(CurriculumError, match="cycle"):
        Curriculum(tail)


def test_odd_but_right_settings_survive_toml():
    curriculum = Curriculum(
        [Task("a", settings={"x": float("inf"), "y": [1, {"z": 1e-9}], "": ""})]
    )
    assert Curriculum.from_toml(curriculum.to_toml()) == curriculum


def test_tasks_can_be_in_sets():
    assert len({Task("a", settings={"x": []}), Task("a", settings={"x": []})}) == 1


def test_copies_stay_as_they_are():
    curriculum = Curriculum.load("key-corridor")
    assert copy.deepcopy(curriculum) is curriculum
    again = pickle.loads(pickle.dumps(curriculum))
    assert again == curriculum
    assert not again.minimum.flags.writeable
