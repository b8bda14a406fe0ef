"""`slackwater lab`: each family of experiments, quickly, in one Spark session."""

import json

import pytest
from typer.testing import CliRunner

from recordings import write_debs, write_recording
from slackwater.cli import app
from slackwater.errors import DataError
from slackwater.spark.session import session
from slackwater_lab.datasets import FOLDER
from slackwater_lab.recorded_streams import folder_of

NAMES = [  # names never change, or results cannot be compared across versions
    "fig6", "table2", "resolution", "fig7", "fig8", "fig9", "fig10", "fig11", "readings", "debs",
    "thesis-data", "thesis-quality", "thesis-time", "thesis-options", "thesis-overhead",
    "kim", "grubjoin", "pecj", "pecj-join", "frontier", "step", "gap", "rivals", "moving", "real",
    "start", "publish", "shards", "kinds", "concepts",
]  # fmt: skip
NEED_DATA = ("real", "debs")  # of the user
WITHOUT_FIGURES = ("resolution", "thesis-overhead", "shards")


@pytest.fixture(scope="module")
def spark():
    running = session("lab tests", cores=2)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")


@pytest.fixture
def lab(spark, data, monkeypatch):
    monkeypatch.setenv(FOLDER, str(data))
    return lambda *arguments: CliRunner().invoke(app, ["lab", *arguments])


def test_list_names_every_experiment():
    listed = CliRunner().invoke(app, ["lab", "list", "--json"])
    assert [e["name"] for e in json.loads(listed.stdout)["experiments"]] == NAMES
    assert "Table II" in CliRunner().invoke(app, ["lab", "list"]).stdout


def test_unknown_experiment_is_a_bad_request():
    result = CliRunner().invoke(app, ["lab", "run", "fig99"])
    assert result.exit_code == 2
    assert "there is no experiment 'fig99'; there are fig6, table2" in result.stderr


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEED_DATA])
def test_quick_run_writes_page_and_figures(lab, tmp_path, name):
    result = lab("run", name, "--quick", "--json", "--seed", "3", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    sheet = json.loads(result.stdout)
    assert (sheet["command"], sheet["seed"]) == (f"lab run {name} --quick", 3)
    assert all({"name", "value", "unit", "ok"} <= set(line) for line in sheet["lines"])
    page = (tmp_path / f"{name}.md").read_text()
    assert f"`slackwater lab run {name} --quick --seed 3`" in page
    figures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert figures or name in WITHOUT_FIGURES
    assert all(f"]({figure})" in page for figure in figures)


@pytest.mark.full
@pytest.mark.spark
def test_real_works_on_any_folder_of_recordings(lab, tmp_path):
    folder, pages = tmp_path / "recorded", tmp_path / "pages"
    folder.mkdir()
    write_recording(folder)
    result = lab("run", "real", "--quick", "--json", "--data", str(folder), "--out", str(pages))
    assert result.exit_code == 0, result.output
    values = {line["name"]: line["value"] for line in json.loads(result.stdout)["lines"]}
    assert values["recorded, 0.95: measurements"] > 0
    # what runs confirm is close to what one pass says
    assert values["recorded, 0.95: K*"] > 0
    assert values["recorded, 0.95, fixed: Φ(Γ)"] >= 0.93
    assert values["recorded, 0.95, moving: Φ(Γ)"] <= 1
    page = (pages / "real.md").read_text()
    assert "](real-recorded.png)" in page and str(tmp_path) not in page


@pytest.mark.full
@pytest.mark.spark
def test_real_works_on_our_recordings(lab):
    try:
        folder_of(None)
    except DataError as error:
        pytest.skip(str(error))
    result = lab("run", "real", "--quick", "--json")
    assert result.exit_code == 0, result.output
    assert all(line["ok"] for line in json.loads(result.stdout)["lines"])


@pytest.mark.full
@pytest.mark.spark
def test_debs_works_on_a_file_of_the_recording(lab, tmp_path):
    file = write_debs(tmp_path / "full-game", minutes=1.0)
    options = ("--quick", "--json", "--data", str(file), "--out", str(tmp_path))
    result = lab("run", "debs", *options)
    assert result.exit_code == 0, result.output
    values = {line["name"]: line["value"] for line in json.loads(result.stdout)["lines"]}
    assert values["Max-K-slack: average γ(P)"] > 0.99 > values["No-K-slack: average γ(P)"]
    page = (tmp_path / "debs.md").read_text()
    assert "](debs.png)" in page and str(tmp_path) not in page


@pytest.mark.spark
def test_real_without_a_folder_is_a_bad_request(lab, tmp_path):
    result = lab("run", "real", "--data", str(tmp_path / "nowhere"))
    assert result.exit_code == 2
    assert "recorded streams need a folder, as --data or in the variable" in result.stderr


@pytest.mark.full
@pytest.mark.spark
def test_max_slack_loses_next_to_nothing(lab):
    lines = json.loads(lab("run", "table2", "--quick", "--json").stdout)["lines"]
    recalls = [line["value"] for line in lines if line["name"].endswith("average γ(P)")]
    assert len(recalls) == 7 and min(recalls) > 0.99


@pytest.mark.full
@pytest.mark.spark
def test_frontier_says_how_far_from_the_best_fixed_slack(lab):
    result = lab("run", "frontier", "--quick")
    assert result.exit_code == 0, result.output
    assert "Frontier, stationary disorder" in result.stdout
    assert "K / K*" in result.stdout
