"""`python -m mqbroker_client.contrib.cli` is `mqb`."""

import sys

from mqbroker_client.contrib.cli import main

sys.exit(main())
