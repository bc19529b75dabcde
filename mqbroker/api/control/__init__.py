"""The control plane: what an operator configures and reads, with one module per resource, on Django REST framework."""
