"""``python -m pymc_dpsplit``."""

import sys

from pymc_dpsplit.cli import main

# Guarded, for a chain started by spawn imports this file again.
if __name__ == "__main__":
    sys.exit(main())
