"""The machine and the versions a benchmark is run with, as far as they can be read cheaply."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

from llvmlite import binding

_PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "pymc", "pytensor", "arviz")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def n_cores() -> int:
    """Cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def machine() -> dict[str, str]:
    """Processor, cores, caches and memory."""
    found = {
        "processor": f"{_processor()}, {_vectors()}",
        "cores": str(n_cores()),
        "caches": _caches(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    return {name: value for name, value in found.items() if value}


def versions() -> dict[str, str]:
    """Versions of Python, of the packages that matter and of the C compiler."""
    found = {"Python": platform.python_version()}
    found |= {name: version(name) for name in _PACKAGES}
    compiler = shutil.which("cc")
    if compiler is not None:
        told = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True)
        found["C compiler"] = told.stdout.splitlines()[0]
    return found


def _entries(path: Path) -> dict[str, str]:
    """Lines `name: value` of a file of the system, the last of each name; empty without it."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def _processor() -> str:
    return _entries(Path("/proc/cpuinfo")).get("model name") or platform.processor()


def _vectors() -> str:
    """Widest vectors of float64 that the compiler of our kernels sees; few names tell it."""
    features = binding.get_host_cpu_features()
    widths = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "neon": "NEON"}
    return next((name for key, name in widths.items() if features.get(key)), "no wide vectors")


def _memory() -> str:
    total = _entries(Path("/proc/meminfo")).get("MemTotal", "")
    return f"{int(total.split()[0]) / 2**20:.0f} GiB" if total else ""


def _caches() -> str:
    found = []
    for folder in sorted(_CACHES.glob("index*")):
        parts = [(folder / name).read_text(encoding="ascii") for name in ("level", "type", "size")]
        level, kind, size = (part.strip() for part in parts)
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found)
