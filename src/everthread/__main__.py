"""Run the command line as `python -m everthread`."""

import sys

from everthread.cli import main

if __name__ == "__main__":
    sys.exit(main())
