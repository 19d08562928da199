"""The performance page says what was measured, and nothing else; its rows judge rightly."""

from dataclasses import replace

import pytest

from benchmarks.catalogue import ROOT, SUBJECTS
from benchmarks.page import PAGE, answers, page_of, read_limits
from benchmarks.results import Result, load, save
from benchmarks.row import Row, figure, line_of

MACHINE = {"processor": "a processor", "cores": "2"}
VERSIONS = {"Python": "3.13.0"}


def result_of(*rows, machine=MACHINE):
    return Result("2026-11-21", machine, VERSIONS, rows)


@pytest.mark.parametrize(
    ("measured", "must", "aim", "larger", "verdict"),
    [
        (9.0, 8.0, 12.0, True, "must hold"),
        (12.0, 8.0, 12.0, True, "aim"),
        (7.9, 8.0, 12.0, True, "no"),
        (4.0, 10.0, 5.0, False, "aim"),
        (10.0, 10.0, 5.0, False, "must hold"),
        (10.1, 10.0, 5.0, False, "no"),
        (1.0, 1.5, None, False, "yes"),
        (70.0, None, 60.0, False, "no"),
        (float("nan"), 8.0, 12.0, True, "no"),
        (float("nan"), 8.0, None, False, "no"),
        (3.0, None, None, True, ""),
        (None, 8.0, 12.0, True, "not measured"),
    ],
)
def test_verdict(measured, must, aim, larger, verdict):
    row = Row(name="x", measured=measured, must=must, aim=aim, larger_is_better=larger)
    assert row.verdict == verdict


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.345, "x", "12.3x"),
        (0.01234, "s", "0.0123 s"),
        (1439.6, "MB", "1,440 MB"),
        (99.97, "", "100"),
        (None, "s", "-"),
        (float("nan"), "s", "not reached"),
    ],
)
def test_figure(value, unit, text):
    assert figure(value, unit) == text


def test_line_for_the_terminal():
    row = Row(name="a", measured=7.0, unit="x", must=8.0, aim=12.0, note="why")
    assert line_of(row) == "  a: 7x [no] (must hold 8x; aim 12x; why)"
    assert line_of(Row(name="a", measured=7.0)) == "  a: 7"


def test_results_come_back_as_they_were(tmp_path):
    saved = result_of(Row(name="a", measured=None, note="no compiler"), Row(name="b", measured=2.5))
    save("sweep", saved, tmp_path)
    assert load(["threads", "sweep"], tmp_path) == {"sweep": saved}


def test_two_rows_of_one_name_are_refused(tmp_path):
    twice = result_of(Row(name="a", measured=1.0), Row(name="a", measured=2.0))
    with pytest.raises(ValueError, match="two rows of sweep"):
        save("sweep", twice, tmp_path)


def test_page_shows_rows_and_explains_only_the_missed():
    rows = (
        Row(name="good", measured=9.0, unit="x", must=8.0),
        Row(name="bad", measured=7.0, unit="x", must=8.0, note="N = 5"),
        Row(name="short of the aim", measured=9.0, unit="x", must=8.0, aim=12.0),
    )
    limits = {"sweep": {"good": "g.", "bad": "Memory.", "short of the aim": "Cache."}}
    page = page_of({"sweep": result_of(*rows)}, limits)
    assert "| bad | 7x | >= 8x |  | no | N = 5 |" in page
    assert "| good | 9x | >= 8x |  | yes |  |" in page
    assert "- bad: Memory.\n- short of the aim: Cache.\n" in page
    assert "g." not in page.split("What limits")[1].splitlines()[2]
    assert "| processor | a processor |" in page
    # What has not been run is named.
    assert f"- {SUBJECTS['threads'].title}" in page.split("## Not measured")[1]


def test_page_tells_machines_apart():
    row = Row(name="a", measured=1.0)
    other = result_of(row, machine={"processor": "another"})
    page = page_of({"sweep": result_of(row), "threads": other, "mixing": result_of(row)}, {})
    assert "|  | machine 1 | machine 2 |" in page
    assert "| processor | a processor | another |" in page
    assert "`threads`, 2026-11-21, machine 2." in page
    assert "`mixing`, 2026-11-21, machine 1." in page


def test_page_says_that_a_run_was_stopped():
    whole = result_of(Row(name="a", measured=1.0))
    assert "stopped" not in page_of({"sweep": whole}, {})
    stopped = page_of({"sweep": replace(whole, is_complete=False)}, {})
    assert "`sweep`, 2026-11-21. The run was stopped; its last rows are missing." in stopped


def test_rows_with_one_explanation_share_a_line():
    rows = [Row(name=name, measured=1.0, must=2.0) for name in "abc"]
    page = page_of({"sweep": result_of(*rows)}, {"sweep": {"a": "A.", "b": "A.", "c": "C."}})
    assert "- a; b: A.\n- c: C.\n" in page


def test_what_a_user_asks_first_is_answered_by_rows_there_are():
    results = load(list(SUBJECTS))
    for answer in answers():
        assert answer["row"] in {row.name for row in results[answer["subject"]].rows}
    page = PAGE.read_text(encoding="utf-8").split("## In short")[1].split("##")[0]
    assert page.count("\n|") == 2 + len(answers())


def test_explanations_stand_alone():
    """A page shows some of them only, so that none can refer to another."""
    for notes in read_limits().values():
        assert not [note for note in notes.values() if note.startswith("As ")]


def test_every_subject_has_a_module():
    for name in SUBJECTS:
        source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
        assert "\ndef run() -> Iterator[Row]:" in source


def test_page_on_disk_is_what_the_results_give():
    assert PAGE.read_text(encoding="utf-8") == page_of(load(list(SUBJECTS)), read_limits())


def unfounded(limits, results):
    """Explanations of rows that no result has."""
    rows = {(subject, row.name) for subject, result in results.items() for row in result.rows}
    explained = {(subject, name) for subject, notes in limits.items() for name in notes}
    return explained - rows


def test_every_explanation_is_of_a_row_there_is():
    assert unfounded(read_limits(), load(list(SUBJECTS))) == set()


@pytest.mark.control
def test_explanation_of_no_row_is_reported():
    results = {"sweep": result_of(Row(name="a", measured=1.0))}
    limits = {"sweep": {"a": "A.", "b": "B."}, "threads": {"a": "C."}}
    assert unfounded(limits, results) == {("sweep", "b"), ("threads", "a")}


@pytest.mark.control
def test_edited_page_is_noticed():
    results = {"sweep": result_of(Row(name="a", measured=9.0, unit="x", must=8.0))}
    page = page_of(results, {})
    better = {"sweep": result_of(Row(name="a", measured=9.1, unit="x", must=8.0))}
    assert page_of(better, {}) != page
