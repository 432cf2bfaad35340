"""The curves for other tools, read back by those tools."""

import csv
import sys

import numpy as np
import pytest
from small_jobs import job, many_points, two_points

from mastery import CheckpointError, MasteryError
from mastery.rundir.event_files import crc32c
from mastery.rundir.export import (
    evaluation_table,
    export_csv,
    export_parquet,
    export_tensorboard,
    training_table,
)
from mastery.rundir.results import load_results
from mastery.rundir.store import Store


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs")
    two_points(directory)
    return load_results(directory)


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs")
    names = ("a, b", "c")
    many_points(directory, job(names, ("mr",), grid={"learning_rate": (0.001, 0.0003)}), 30)
    return load_results(directory)


def test_csv_by_hand(two, tmp_path):
    training, evaluation = export_csv(two, tmp_path / "x.csv")
    assert (training.name, evaluation.name) == ("x.csv", "x-evaluation.csv")
    lines = training.read_text().splitlines()
    assert lines[0] == (
        "run,label,program,seed,step,frames,seconds,task,"
        "probability,mastery,return,episodes,task_frames,share"
    )
    assert lines[1] == "0,mr,mr,0,1,16,2.5,easy,0.75,0.25,0.5,2,12,0.75"
    assert lines[2] == "0,mr,mr,0,1,16,2.5,hard,0.25,0.0,,0,4,0.25"  # no episode, no return
    assert lines[8] == "1,mr,mr,1,2,32,5.0,hard,0.75,0.25,0.5,1,12,0.75"
    assert len(lines) == 1 + 4 * 2 * 2
    lines = evaluation.read_text().splitlines()
    assert lines[0] == "policy,run,label,program,seed,frames,task,return,success,length"
    assert lines[2] == "greedy,0,mr,mr,0,32,hard,0.25,0.5,20.0"
    assert lines[11] == "sampled,1,mr,mr,1,32,easy,1.0,1.0,30.0"
    assert len(lines) == 1 + 2 * 4 * 2


def test_csv_keeps_every_digit(grid, tmp_path):
    with export_csv(grid, tmp_path / "x.csv")[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 30 * 2
    for row in rows:
        at = list(grid.frames).index(int(row["frames"])), int(row["run"]), row["task"] == "c"
        at = tuple(map(int, at))
        assert float(row["mastery"]) == grid.mastery[at]
        assert float(row["return"] or "nan") == pytest.approx(grid.returns[at], 0, 0, nan_ok=True)
        assert float(row["learning_rate"]) == grid.changes[at[1]]["learning_rate"]
        assert int(row["seed"]) == grid.seeds[at[1]]


def test_a_job_without_points_gives_headers(tmp_path):
    Store(tmp_path / "new", job()).close()
    results = load_results(tmp_path / "new")
    for path in export_csv(results, tmp_path / "x.csv"):
        assert path.read_text().count("\n") == 1
    for place in export_tensorboard(results, tmp_path / "logs"):
        assert place.is_dir()


def test_parquet_holds_the_same_tables(grid, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    paths = export_parquet(grid, tmp_path / "x.parquet")
    assert paths[1].name == "x-evaluation.parquet"
    for path, table in zip(paths, (training_table(grid), evaluation_table(grid)), strict=True):
        read = parquet.read_table(path)
        assert read.column_names == list(table)
        for name, column in table.items():
            values = read[name].to_pylist()
            if column.dtype == float:
                values = [np.nan if x is None else x for x in values]  # NaN is kept as null
                np.testing.assert_array_equal(values, column)
            else:
                assert values == column.tolist()


def test_parquet_needs_pyarrow(two, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MasteryError, match="pip install pyarrow"):
        export_parquet(two, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_reads_what_was_written(two, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    places = export_tensorboard(two, tmp_path)
    assert [p.name for p in places] == ["mr_seed0", "mr_seed1", "uniform_seed0", "uniform_seed1"]
    export_tensorboard(two, tmp_path)  # again: nothing is doubled

    def scalars(place, tag):
        read = accumulator.EventAccumulator(str(place))
        read.Reload()
        return [(event.step, event.value) for event in read.Scalars(tag)]

    assert scalars(places[0], "return/easy") == [(16, 0.5), (32, 0.75)]
    assert scalars(places[1], "return/easy") == [(16, 0.75)]  # no episode in the second
    assert scalars(places[1], "probability/hard") == [(16, 0), (32, 0.75)]
    assert scalars(places[1], "mastery/hard") == [(16, 0), (32, 0.25)]
    assert scalars(places[0], "evaluation/greedy/hard") == [(32, 0.25)]
    assert scalars(places[1], "evaluation/sampled/easy") == [(32, 1)]
    assert scalars(places[1], "evaluation_length/sampled/easy") == [(32, 30)]
    read = accumulator.EventAccumulator(str(places[0]))
    read.Reload()
    first, second = read.Scalars("share/easy")
    assert second.wall_time - first.wall_time == 2.5


def test_tensorboard_takes_long_jobs_and_odd_names(grid, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    places = export_tensorboard(grid, tmp_path / "deep" / "logs")
    assert places[2].name == "mr_learning_rate=0.0003_seed0"
    read = accumulator.EventAccumulator(str(places[2]))
    read.Reload()
    found = [(e.step, e.value) for e in read.Scalars("mastery/a, b")]
    np.testing.assert_array_equal(
        found, np.stack([grid.frames, grid.mastery[:, 2, 0].astype("f4")], axis=1)
    )


def test_checksums_of_rfc_3720():
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


@pytest.mark.parametrize("export", [export_csv, export_parquet, export_tensorboard])
def test_a_place_that_cannot_be_written_to(export, two, tmp_path):
    if export is export_parquet:
        pytest.importorskip("pyarrow")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CheckpointError, match="cannot"):
        export(two, tmp_path / "file" / "x")
    assert (tmp_path / "file").read_text() == "mine"
