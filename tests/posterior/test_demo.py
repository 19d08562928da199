import arviz as az
import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import demo
from pymc_dpsplit.cli import main


@pytest.mark.parametrize(
    ("data", "shape", "mean"),
    [("faithful", (272, 2), [3.488, 70.897]), ("galaxies", (82,), 20.831)],
)
def test_data_are_those_published(data, shape, mean):
    values, columns = demo.DATA_SETS[data].load()
    assert values.shape == shape
    assert len(columns) == np.atleast_2d(values.T).shape[0]
    np.testing.assert_allclose(values.mean(0), mean, atol=5e-4)


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"pymc_dpsplit {dps.__version__}\n"


def test_help_names_every_option(capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--help"])
    said = capsys.readouterr().out
    assert all(word in said for word in ("--out", "--draws", "--data", "galaxies", "dpsplit_demo"))


@pytest.mark.parametrize(
    "arguments", [[], ["fit"], ["demo", "--draws", "0"], ["demo", "--draws", "1.5"]]
)
def test_wrong_use_exits_with_a_message(capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_demo_hands_its_options_on(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr("pymc_dpsplit.cli.run", lambda *given: called.append(given))
    assert main(["demo", "--data", "galaxies", "--draws", "7", "--out", str(tmp_path)]) == 0
    assert called == [("galaxies", 7, tmp_path)]


@pytest.mark.slow
@pytest.mark.parametrize("data", list(demo.DATA_SETS))
def test_demo_prints_and_writes(capsys, monkeypatch, tmp_path, data):
    monkeypatch.setattr(demo, "_cores", lambda: 1)
    folder = tmp_path / "new" / "folder"
    demo.run(data, 50, folder)
    said = capsys.readouterr().out
    assert "Mixture x: 4 chains of 50 draws" in said
    assert str(folder) in said
    figures = {f"{data}_{name}.png" for name in ("density", "clusters", "similarity", "trace")}
    assert {path.name for path in folder.iterdir()} == {f"{data}.nc", *figures}
    idata = az.from_netcdf(folder / f"{data}.nc")
    assert str(dps.diagnose(idata)) in said
