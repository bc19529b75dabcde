"""The broker's tables for any Spark: a data source `mqbroker`, for `spark.read` and for `spark.readStream`.

    register(spark)
    spark.read.format("mqbroker").option("table", "entries").load()
    spark.readStream.format("mqbroker").load()
    frame.write.format("mqbroker").option("topic", "prices").mode("append").save()

The database is that of DATABASE_URL where Spark's driver runs, or of the option `url`. Spark hides the value of an
option of that name in plans.
"""

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from analytics.errors import OptionRefused
from analytics.readers.datasource import published
from analytics.readers.datasource.options import Options
from analytics.readers.datasource.reading import BrokerReader, FilteringReader
from analytics.readers.datasource.streams import BrokerStream

ROOT = Path(__file__).resolve().parents[1]
# Of a checkout; elsewhere it is installed.
CLIENT = ROOT / "client"
BROKER = ("MQBROKER_URL", "MQBROKER_API_KEY")
# Off by default; then Spark refuses a reader that takes filters.
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Makes the format `mqbroker` known to a session.

    Where Spark runs on this machine its Python workers get this Python, unless PYSPARK_PYTHON names another, and the
    broker's code. Those of a cluster need both by themselves.
    """
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        if "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable
        given = context.environment.get("PYTHONPATH", "").split(os.pathsep)
        # Spark starts new workers for each change of their environment: a second call changes nothing.
        code = [path for path in (str(ROOT), str(CLIENT)) if path not in given]
        context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*code, *given]))
    # For the sink, whose workers have the environment of this moment.
    context.environment |= {name: os.environ[name] for name in BROKER if name in os.environ}
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(BrokerSource)


class BrokerSource(DataSource):
    """The tables of the export, as of one moment or as streams; without the option `table` what is committed.

    Rows that are written go the way of every other message: by the client's sink, over HTTP.
    """

    @classmethod
    def name(cls) -> str:
        """The name to give to `format`."""
        return "mqbroker"

    def schema(self) -> StructType:
        """The columns of the table, or those that are wanted. Raises OptionRefused."""
        of = Options(self.options)
        of.require_known()
        return published.narrowed(of.table, of.columns) if of.columns else published.TABLES[of.table].columns

    def reader(self, schema: StructType) -> BrokerReader:
        """Reads the table once. Raises OptionRefused."""
        of = Options(self.options)
        of.require_known()
        of.require_none_of_streams()
        published.require_ours(of.table, schema)
        reads_by = FilteringReader if of.pushdown else BrokerReader
        return reads_by(of.conninfo, of.table, schema, of.rows_per_slice)

    def streamReader(self, schema: StructType) -> BrokerStream:
        """Reads the table as a stream. Raises OptionRefused for one without an order."""
        of = Options(self.options)
        of.require_known()
        published.require_ours(of.streamed, schema)
        return BrokerStream(of.conninfo, of.streamed, schema, of.starting, of.rows_per_slice, of.most_per_trigger)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Sends the rows of a frame as messages. Raises OptionRefused, or the sink's WriteRefused."""
        return _sink(self.options).writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Sends the rows of a stream's batches as messages; raises as `writer`."""
        return _sink(self.options).streamWriter(schema, overwrite)


def _sink(options: MutableMapping[str, str]) -> DataSource:
    try:
        from mqbroker_client.contrib import spark  # the client is installed by itself, and reading does without it
    except ImportError as missing:
        raise OptionRefused("Writing needs the client: pip install mqbroker-client.") from missing
    return spark.MessageSink(options)
