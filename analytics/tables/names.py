"""The names of topics and groups in place of their ids."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructType

NAMES = StructType().add("id", IntegerType()).add("name", StringType())


def named(frame: DataFrame, names: DataFrame, id_column: str, name_column: str) -> DataFrame:
    """The frame with the name of each id in a column, null where the topic or group is deleted; no row is lost."""
    lookup = F.broadcast(names.select(names["id"].alias(id_column), names["name"].alias(name_column)))
    return frame.join(lookup, id_column, "left")
