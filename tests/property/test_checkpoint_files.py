"""A folder of chains gives back what was stored, or says that it is damaged."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pymc_dpsplit.checkpoint.chain_files import ChainFiles
from pymc_dpsplit.checkpoint.recording import Recording
from tests.property.test_codec import same

N_DRAWS, EVERY = 5, 2
CHAINS = ("chain-0", "chain-1")
CHUNKS = [f"draws-{i:09d}-{min(i + EVERY, N_DRAWS):09d}.npz" for i in range(0, N_DRAWS, EVERY)]
FILES = [f"{chain}/{name}" for chain in CHAINS for name in ("manifest.json", "state.npz", *CHUNKS)]
# Names under which a copy may be taken for a chunk, besides those of chunks.
OTHERS = [
    f"chain-0/draws-{first:09d}-{last:09d}.npz" for first, last in [(0, 1), (0, 5), (4, 9), (5, 7)]
]


def write(folder: Path) -> None:
    """Write two chains as a run with two steps does."""
    for number, chain in enumerate(CHAINS):
        rng = np.random.default_rng(number)
        files = ChainFiles(folder / chain)
        files.begin(
            {"format": 2, "tune": 2, "rng": {"seed": {"entropy": 3, "spawn_key": [number]}}}
        )
        recording = Recording(files)
        for draw in range(N_DRAWS):
            point = {"x_mu": rng.normal(size=(2, 3)), "count": np.array(draw)}
            recording.add(point, [{"accept": rng.random()}, {"tune": draw < 2}])
            if recording.n_pending == EVERY or draw + 1 == N_DRAWS:
                recording.commit([{"labels": rng.integers(9, size=7)}, {"scaling": rng.random()}])


def read(folder: Path) -> list[Any]:
    """Read all that is stored, as a run that continues does."""
    found = []
    for chain in CHAINS:
        files = ChainFiles(folder / chain)
        manifest = files.manifest()
        recording = Recording(files)
        draws = [recording.draw(number) for number in range(recording.n_stored)]
        found.append([manifest, draws, recording.methods()])
    return found


def unless_damaged(call: Callable[[], list[Any]]) -> list[Any] | None:
    """What a call returns, or None where it says that a file is damaged."""
    try:
        return call()
    except ValueError as error:
        if "of the checkpoint is damaged or missing; delete the folder" in str(error):
            return None
        raise


@pytest.fixture(scope="module")
def stored() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        yield Path(folder)


def flip(bits: list[int], name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        for bit in bits:
            place, power = divmod(bit % (8 * len(content)), 8)
            content[place] ^= 1 << power
        (folder / name).write_bytes(content)

    return damage


def truncate(length: int, name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: length % len(content)])

    return damage


def delete(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def swap(one: str, other: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        contents = [(folder / name).read_bytes() for name in (one, other)]
        for name, content in zip((other, one), contents, strict=True):
            (folder / name).write_bytes(content)

    return damage


def duplicate(one: str, other: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / other).write_bytes((folder / one).read_bytes())

    return damage


NAMES = st.sampled_from(FILES)
BITS = st.lists(st.integers(0, 2**20), min_size=1, max_size=4)
FAULTS = st.one_of(
    st.builds(flip, BITS, NAMES),
    st.builds(truncate, st.integers(0, 2**20), NAMES),
    st.builds(delete, NAMES),
    st.builds(swap, NAMES, NAMES),
    st.builds(duplicate, NAMES, st.sampled_from(FILES + OTHERS)),
)


@given(FAULTS)
@example(delete("chain-0/state.npz"))
@example(swap(f"chain-0/{CHUNKS[0]}", f"chain-0/{CHUNKS[1]}"))
@example(swap("chain-0/state.npz", "chain-1/state.npz"))
@example(swap("chain-0/manifest.json", "chain-1/manifest.json"))
def test_damage_is_told_or_does_not_matter(stored: Path, damage: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(shutil.copytree(stored, Path(folder) / "run"))
        damage(copied)
        found = unless_damaged(lambda: read(copied))
        assert found is None or same(found, read(stored))


def test_every_byte_of_a_manifest_counts(stored: Path, tmp_path: Path) -> None:
    files = ChainFiles(tmp_path / "chain-0")
    expected = ChainFiles(stored / "chain-0").manifest()
    content = (stored / "chain-0" / "manifest.json").read_bytes()
    files.folder.mkdir()
    for bit in range(0, 8 * len(content), 7):
        (files.folder / "manifest.json").write_bytes(content)
        flip([bit], "chain-0/manifest.json")(tmp_path)
        found = unless_damaged(lambda: [files.manifest()])
        assert found is None or found == [expected]


@pytest.mark.control
def test_what_was_not_stored_is_seen(stored: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(stored, tmp_path / "run"))
    assert same(read(copied), read(stored))
    files = ChainFiles(copied / "chain-1")
    state = files.state()
    assert state is not None
    state["methods"][1]["scaling"] = np.nextafter(state["methods"][1]["scaling"], 2.0)
    files.commit(N_DRAWS, N_DRAWS, {}, state)
    assert not same(read(copied), read(stored))
