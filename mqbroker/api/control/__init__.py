"""The control plane: what an operator configures and asks, one module per resource, on Django REST framework."""
