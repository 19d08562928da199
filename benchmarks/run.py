"""Run every benchmark, one after another."""

import burn_in
import mixing
import model_share
import sweep


def main() -> None:
    """Print the figures of all benchmarks."""
    for benchmark in (sweep, burn_in, model_share, mixing):
        benchmark.main()


if __name__ == "__main__":
    main()
