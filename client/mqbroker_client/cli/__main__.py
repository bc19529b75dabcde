"""`python -m mqbroker_client.cli` is `mqb`."""

import sys

from mqbroker_client.cli import main

sys.exit(main())
