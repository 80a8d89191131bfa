"""`python -m everthread.cli` is `everthread`."""

import sys

from everthread.cli import main

sys.exit(main())
