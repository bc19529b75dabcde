"""The data source `mqbroker`, with which any Spark program can read the broker's tables.

    register(spark)
    spark.read.format("mqbroker").option("table", "entries").load()
    spark.readStream.format("mqbroker").load()
    frame.write.format("mqbroker").option("topic", "prices").mode("append").save()

The database is the one of DATABASE_URL in the environment of Spark's driver, or of the option `url`. Spark hides the
value of an option named `url` in plans.
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
# The client in a checkout; elsewhere it is an installed package.
CLIENT = ROOT / "client"
BROKER = ("MQBROKER_URL", "MQBROKER_API_KEY")
# Off by default. When it is off, Spark refuses a reader that accepts filters.
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Registers the format `mqbroker` in a session.

    If Spark runs on this machine, its Python workers use this Python (unless PYSPARK_PYTHON names another) and the
    broker's code. On a cluster, both must be installed for the workers.
    """
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        if "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable
        given = context.environment.get("PYTHONPATH", "").split(os.pathsep)
        # Spark starts new workers when their environment changes, so a second call changes nothing.
        code = [path for path in (str(ROOT), str(CLIENT)) if path not in given]
        context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*code, *given]))
    # For the sink: its workers get the environment as it is at this moment.
    context.environment |= {name: os.environ[name] for name in BROKER if name in os.environ}
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(BrokerSource)


class BrokerSource(DataSource):
    """The tables of the export, read once or as streams. Without the option `table`: the committed messages.

    Rows that are written become messages, sent over HTTP by the client's sink.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "mqbroker"

    def schema(self) -> StructType:
        """The columns of the table, or the requested ones. Raises OptionRefused."""
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
        """Reads the table as a stream. Raises OptionRefused for a table that has no order."""
        of = Options(self.options)
        of.require_known()
        published.require_ours(of.streamed, schema)
        return BrokerStream(of.conninfo, of.streamed, schema, of.starting, of.rows_per_slice, of.most_per_trigger)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Sends the rows of a frame as messages. Raises OptionRefused, or the sink's WriteRefused."""
        return _sink(self.options).writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Sends the rows of each batch of a stream as messages. Raises as `writer`."""
        return _sink(self.options).streamWriter(schema, overwrite)


def _sink(options: MutableMapping[str, str]) -> DataSource:
    try:
        from mqbroker_client.contrib import spark  # the client is a separate package, not needed for reading
    except ImportError as missing:
        raise OptionRefused("Writing needs the client: pip install mqbroker-client.") from missing
    return spark.MessageSink(options)
