"""Orders, and a row for each run of a task that took effect."""

from django.db import models


class Order(models.Model):
    """An order that was committed."""

    class Meta:
        app_label = "project"


class Run(models.Model):
    """The effect of one run of a task."""

    #: What the run is about, such as the number of its order.
    about = models.TextField()

    class Meta:
        app_label = "project"
