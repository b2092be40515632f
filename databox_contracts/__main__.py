"""`python -m databox_contracts` is the command line."""

import sys

from databox_contracts.cli import main

if __name__ == "__main__":
    sys.exit(main())
