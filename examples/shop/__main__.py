"""`python -m examples.shop`."""

import sys

from examples.shop.demo import main

sys.exit(main())
