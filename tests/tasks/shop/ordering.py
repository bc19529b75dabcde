"""Places orders until it is killed: `python -m tests.tasks.shop.ordering WAY`."""

import sys
from importlib import import_module

import django

if __name__ == "__main__":
    django.setup()
    # Models are imported only now.
    import_module("tests.tasks.shop.orders").place(sys.argv[1])
