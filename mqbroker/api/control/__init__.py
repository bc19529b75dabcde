"""The control plane: what an operator configures and reads, one module per resource, on Django REST framework."""
