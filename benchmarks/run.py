"""Run every benchmark, one after another."""

import burn_in
import concentration
import large_n
import mixing
import model_share
import sweep
from threadpoolctl import threadpool_limits


def main() -> None:
    """Print the figures of all benchmarks."""
    with threadpool_limits(1):
        for benchmark in (sweep, burn_in, model_share, large_n, concentration, mixing):
            benchmark.main()


if __name__ == "__main__":
    main()
