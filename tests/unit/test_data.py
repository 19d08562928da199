"""Observations as arrays: blocks, views that cannot be written to, and files."""

import copy
import errno
import gc
import importlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.data import blocks
from pymc_dpsplit.data.blocks import (
    blocks_of,
    column_means,
    count_where,
    missing_index_of,
    moments_of,
)
from pymc_dpsplit.data.fixed_rows import fixed, memory_map_of, read_only
from pymc_dpsplit.data.spool import is_chunked, remove_stale, spooled
from tests.support.chunked import Chunked

ROWS = np.random.default_rng(3).normal(size=(1000, 7)) * 3.0 + 1e4


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of some ten rows, so that there are many."""
    monkeypatch.setattr(blocks, "_BLOCK_SIZE", 77)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path / "temporary"


def on_disk(folder, rows, offset=0, order="C", mode="r"):
    path = folder / "rows.bin"
    path.write_bytes(b"x" * offset + rows.tobytes(order))
    return np.memmap(path, rows.dtype, mode, offset, rows.shape, order)


# --- blocks -------------------------------------------------------------------------------


@pytest.mark.parametrize("multiple", [1, 4, 1000, 5000])
@pytest.mark.parametrize("shape", [(1, 7), (1000,), (1000, 7), (13, 500)])
def test_blocks_make_up_the_whole(shape, multiple, small_blocks):
    found = list(blocks_of(shape, multiple))
    assert [block.start for block in found] == [0, *(block.stop for block in found[:-1])]
    assert found[-1].stop == shape[0]
    assert all((block.stop - block.start) % multiple == 0 for block in found[:-1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_summed_in_blocks(dtype, small_blocks):
    rows = ROWS.astype(dtype)
    rows[5, 2] = rows[999, 0] = np.nan
    expected = rows.astype(np.float64)
    mean, variance = moments_of(rows)
    np.testing.assert_allclose(mean, np.nanmean(expected, axis=0), rtol=1e-14)
    np.testing.assert_allclose(variance, np.nanvar(expected, axis=0), rtol=1e-10)
    np.testing.assert_array_equal(missing_index_of(rows), [[5, 999], [2, 0]])
    assert count_where(np.isnan, rows) == 2
    np.testing.assert_allclose(
        column_means(rows[6:900]), expected[6:900].mean(0, dtype=np.float64), rtol=1e-14
    )


def test_single_precision_changes_no_sum():
    single = ROWS.astype(np.float32)
    same = single.astype(np.float64)
    for rows, column in ((single, same), (single[:, :1], same[:, :1])):
        np.testing.assert_array_equal(column_means(rows), column_means(column))
        np.testing.assert_array_equal(moments_of(rows), moments_of(column))


@pytest.mark.control
def test_sums_in_single_precision_would_differ():
    single = ROWS.astype(np.float32)
    assert not np.array_equal(single.mean(0), column_means(single))


def test_column_that_does_not_vary_or_is_empty(small_blocks):
    rows = ROWS.copy()
    rows[:, 3] = 0.1
    mean, variance = moments_of(rows)
    assert mean[3] == pytest.approx(0.1)
    assert variance[3] == np.delete(variance, 3).min()
    rows[:, 4] = np.nan
    with pytest.raises(ValueError, match="no entry in column 4"):
        moments_of(rows)


# --- arrays that cannot be written to -----------------------------------------------------


def test_read_only_is_one_form():
    forms = [ROWS, ROWS.copy("F"), ROWS[::-1][::-1], ROWS.view(np.matrix), fixed(ROWS)]
    for rows in map(read_only, forms):
        assert type(rows) is np.ndarray
        assert rows.flags.c_contiguous
        assert not rows.flags.writeable
        np.testing.assert_array_equal(rows, ROWS)
    assert ROWS.flags.writeable


def test_fixed_rows_are_not_copied():
    rows = fixed(ROWS)
    assert np.shares_memory(rows, ROWS)
    assert copy.copy(rows) is rows
    assert copy.deepcopy([rows])[0] is rows
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 0.0


def test_what_comes_of_arithmetic_is_copied():
    result = fixed(ROWS) + 1.0
    copied = copy.deepcopy(result)
    copied[:] = 0.0
    assert (result > 0.0).all()
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(again, result)
    assert again.flags.writeable


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("offset", [0, 8, 8 * 4321])
def test_map_is_pickled_by_name(tmp_path, offset, mode):
    mapped = on_disk(tmp_path, ROWS, offset, mode=mode)
    for view in (mapped, mapped[10:20], mapped[3:][4:900], mapped.reshape(-1), np.asarray(mapped)):
        written = pickle.dumps(fixed(view))
        assert len(written) < 1000
        again = pickle.loads(written)
        np.testing.assert_array_equal(again, view)
        assert memory_map_of(again) is not None
        assert not again.flags.writeable


def test_private_changes_of_a_map_are_pickled(tmp_path):
    mapped = on_disk(tmp_path, ROWS, mode="c")
    mapped[0] = 5.0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fixed(mapped))), mapped)


def test_map_whose_file_is_gone_is_pickled_whole(tmp_path):
    mapped = on_disk(tmp_path, ROWS)
    (tmp_path / "rows.bin").unlink()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fixed(mapped))), ROWS)


def test_array_in_memory_is_pickled_once():
    rows = fixed(ROWS)
    assert len(pickle.dumps([rows, rows])) < 1.1 * ROWS.nbytes
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows)), ROWS)


# --- arrays that are read in chunks -------------------------------------------------------


@pytest.mark.parametrize("chunks", [(100, 3), (1, 7), (5000, 7), None, ((500, 500), (7,))])
def test_spooled_array_is_read_once_in_order(chunks, temporary, small_blocks):
    source = Chunked(ROWS, chunks)
    assert is_chunked(source)
    rows = spooled(source, np.dtype(np.float64))
    np.testing.assert_array_equal(rows, ROWS)
    np.testing.assert_array_equal(np.concatenate(source.read), np.arange(1000))
    if chunks == (100, 3):
        assert all(part[0] % 100 == 0 for part in source.read)


def test_spooled_file_goes_with_the_array(temporary):
    rows = rows_of(Chunked(ROWS, (100, 7)), 1)
    (folder,) = temporary.iterdir()
    assert (folder / "rows").stat().st_size == ROWS.nbytes
    again = pickle.loads(pickle.dumps(fixed(rows)))
    np.testing.assert_array_equal(again, ROWS)
    del rows
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_spooled_file_goes_if_reading_fails(temporary):
    source = Chunked(ROWS, (100, 7), fails_at=500)
    with pytest.raises(OSError, match="chunk is damaged"):
        spooled(source, np.dtype(np.float64))
    assert list(temporary.iterdir()) == []


# What a full disk says, and where: before the folder is made, and before the file is.
@pytest.mark.parametrize("function", ["tempfile.mkdtemp", "pymc_dpsplit.data.spool._locked"])
def test_full_disk_is_one_sentence(function, temporary, monkeypatch):
    def full(*arguments, **keywords):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(function, full)
    message = (
        r"^observed cannot be copied to a temporary file \(No space left on device\); make room in "
        r".*temporary, or start Python with TMPDIR set to another folder\.$"
    )
    with pytest.raises(OSError, match=message):
        rows_of(Chunked(ROWS, (100, 7)), 1)
    monkeypatch.undo()
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files there")
def test_disk_that_fills_up_is_one_sentence(temporary, small_blocks):
    resource = importlib.import_module("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROWS.nbytes // 2, limits[1]))
    try:
        with pytest.raises(OSError, match=r"^observed cannot be copied .*; make room in"):
            spooled(Chunked(ROWS, (100, 7)), np.dtype(np.float64))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(temporary.iterdir()) == []


def test_no_folder_for_temporary_files_is_one_sentence(monkeypatch):
    def none():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in []")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(
        OSError, match=r"^observed .* make room in the folder of temporary files, or"
    ):
        spooled(ROWS, np.dtype(np.float64))


# The package is named and not imported: what is needed of it is the spool alone.
OTHER = """
import os, sys, time, types
sys.path.insert(0, sys.argv[1])
package = types.ModuleType("pymc_dpsplit")
package.__path__ = [os.path.join(sys.argv[1], "pymc_dpsplit")]
sys.modules["pymc_dpsplit"] = package
import numpy as np
from pymc_dpsplit.data.spool import spooled

rows = spooled(np.ones((100, 7)), np.dtype(float))
if sys.argv[2] == "fork" and os.fork() == 0:
    print("ready", flush=True)
    sys.stdin.read(1)
    print(rows.sum(), flush=True)
else:
    if sys.argv[2] != "fork":
        print("ready", flush=True)
    time.sleep(60)
"""


@contextmanager
def other_spool(temporary: Path, task: str = "wait") -> Iterator[subprocess.Popen]:
    """Another process, that has a spooled array when this yields."""
    command = [sys.executable, "-c", OTHER, str(Path(__file__).resolve().parents[2]), task]
    pipe = subprocess.PIPE
    environment = {**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary)}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)])
def test_spooled_file_of_a_killed_process_goes_with_the_next(number, temporary):
    with other_spool(temporary) as process:
        (theirs,) = temporary.iterdir()
        rows = spooled(ROWS, np.dtype(np.float64))
        (ours,) = set(temporary.iterdir()) - {theirs}
        process.send_signal(number)
        process.wait()
    assert theirs.exists()
    again = spooled(ROWS, np.dtype(np.float64))
    assert not theirs.exists()
    assert ours.exists()
    np.testing.assert_array_equal(rows, again)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_forked_process_still_reads_what_its_owner_spooled(temporary):
    with other_spool(temporary, "fork") as process:
        process.kill()
        process.wait()
        remove_stale()
        assert len(list(temporary.iterdir())) == 1
        process.stdin.write("x")
        process.stdin.close()
        assert process.stdout.readline() == "700.0\n"
        assert process.stdout.read() == ""  # until the child has ended
    remove_stale()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("whose", ["host", "user", "nobody", "link"])
def test_spooled_files_of_others_stay(whose, temporary, tmp_path, monkeypatch):
    with other_spool(temporary) as process:
        (theirs,) = temporary.iterdir()
        process.kill()
        process.wait()
    if whose == "host":
        (theirs / "owner").write_text("elsewhere")
    elif whose == "user":
        uid = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    elif whose == "nobody":
        (theirs / "owner").unlink()
    else:
        theirs.rename(tmp_path / theirs.name)
        theirs.symlink_to(tmp_path / theirs.name)
    remove_stale()
    assert (theirs / "rows").exists()


TYPES = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float64,
    "int16": np.float64,
    "bool": np.float64,
    ">f4": np.float32,
}


@pytest.mark.parametrize("given", TYPES)
def test_types_of_maps_and_chunks(given, temporary, tmp_path):
    rows = (ROWS % 2).astype(given)
    for source in (on_disk(tmp_path, rows), Chunked(rows, (100, 7))):
        found = rows_of(source, 1)
        assert found.dtype == TYPES[given]
        np.testing.assert_array_equal(found, rows)
        assert memory_map_of(found) is not None


def test_maps_out_of_order_are_spooled(temporary, tmp_path):
    (tmp_path / "other").mkdir()
    mapped, misaligned = on_disk(tmp_path, ROWS, order="F"), on_disk(tmp_path / "other", ROWS, 3)
    for source in (mapped, mapped[::2], mapped[:, :3], misaligned):
        found = rows_of(source, 1)
        np.testing.assert_array_equal(found, source)
        assert Path(memory_map_of(found).filename).parent.parent == temporary


def test_map_that_will_do_stays(temporary, tmp_path):
    mapped = on_disk(tmp_path, ROWS.astype(np.float32))
    for source in (mapped, mapped[100:]):
        assert np.shares_memory(rows_of(source, 1), mapped)
    assert np.shares_memory(rows_of(mapped[0], 0), mapped)
    assert list(temporary.iterdir()) == []


BAD = {
    "strings": (np.full((3, 2), "a"), 1, "dtype <U1, which is not numeric"),
    "objects": (np.full((3, 2), None), 1, "dtype object, which is not numeric"),
    "complex": (np.ones((3, 2), complex), 1, "complex128"),
    "scalars": (np.ones((3, 2)), 0, r"shape \(3, 2\), but this component takes shape \(N,\)"),
    "vectors": (np.ones(3), 1, r"shape \(3,\), but this component takes shape \(N, D\)"),
    "empty": (np.ones((0, 2)), 1, "empty"),
    "infinite": (np.array([[1.0, np.inf]]), 1, "1 NaN or infinite entry"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_chunks_are_one_sentence(fault, temporary):
    rows, row_ndim, message = BAD[fault]
    source = Chunked(rows, (1,) * rows.ndim)
    with pytest.raises(ValueError, match=message) as raised:
        rows_of(source, row_ndim)
    assert str(raised.value).startswith("observed ")
    assert str(raised.value).endswith(".")
    assert not source.read or fault == "infinite"
    del raised  # and with it the frames that hold the rows
    gc.collect()
    assert list(temporary.iterdir()) == []
