"""`python -m understudy`."""

import sys

from understudy.cli.main import main

sys.exit(main())
