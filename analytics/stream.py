"""The data source `mqbroker`, with which any Spark program can read the broker's tables.

    register(spark)
    spark.read.format("mqbroker").option("table", "entries").load()
    spark.readStream.format("mqbroker").load()
    frame.write.format("mqbroker").option("topic", "prices").mode("append").save()

The database is named by the option `url`, or by DATABASE_URL in the environment of Spark's driver. Spark hides the
value of an option named `url` in plans.
"""

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.accumulators import SpecialAccumulatorIds, _accumulatorRegistry
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from analytics.errors import OptionRefused
from analytics.readers.datasource import published
from analytics.readers.datasource.options import Options
from analytics.readers.datasource.reading import BrokerReader
from analytics.readers.datasource.streams import BrokerStream

ROOT = Path(__file__).resolve().parents[1]
# The client in a checkout; elsewhere it is an installed package.
CLIENT = ROOT / "client"
BROKER = ("MQBROKER_URL", "MQBROKER_API_KEY")


def register(spark: SparkSession) -> None:
    """Registers the format `mqbroker` in a session, also in one of Spark Connect.

    If this program has started Spark on this machine, Spark's Python workers use this Python (unless PYSPARK_PYTHON
    names another) and the broker's code. On a cluster, and where Spark Connect's server runs, both must be installed.
    """
    if isinstance(spark, SparkSession):
        _provide(spark.sparkContext)
    spark.dataSource.register(BrokerSource)


def _provide(context: SparkContext) -> None:
    """Tells the workers where the broker's code is, and the sink which broker to write to."""
    if (context.master or "").startswith("local"):
        if "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable
        given = context.environment.get("PYTHONPATH", "").split(os.pathsep)
        # Nothing is added twice: whenever the environment changes, Spark starts new workers.
        code = [path for path in (str(ROOT), str(CLIENT)) if path not in given]
        context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*code, *given]))
    # The sink's workers get the environment as it is at this moment.
    context.environment |= {name: os.environ[name] for name in BROKER if name in os.environ}


class BrokerSource(DataSource):
    """The tables of the export, read once or as streams. Without the option `table`: the committed messages.

    Rows that are written become messages, sent over HTTP by the client's sink.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the data source's format."""
        return "mqbroker"

    def schema(self) -> StructType:
        """The columns of the table, or only the requested columns. Raises OptionRefused."""
        of = self._known()
        return published.narrowed(of.table, of.columns) if of.columns else published.TABLES[of.table].columns

    def reader(self, schema: StructType) -> BrokerReader:
        """Reads the table once. Raises OptionRefused."""
        of = self._known()
        of.require_of_reads()
        published.require_ours(of.table, schema)
        return BrokerReader(of.conninfo, of.table, schema, of.choice, of.starting, of.ending, of.rows_per_slice)

    def streamReader(self, schema: StructType) -> BrokerStream:
        """Reads the table as a stream. Raises OptionRefused for a table that has no order."""
        of = self._known()
        of.require_of_streams()
        published.require_ours(of.table, schema)
        return BrokerStream(
            of.conninfo, of.table, schema, of.choice, of.starting, of.rows_per_slice, of.most_per_trigger
        )

    def _known(self) -> Options:
        _leave_profiles_out()
        of = Options(self.options)
        of.require_known()
        return of

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Sends the rows of a frame as messages. Raises OptionRefused, or the sink's WriteRefused."""
        return _sink(self.options).writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Sends the rows of each batch of a stream as messages. Raises the errors of `writer`."""
        return _sink(self.options).streamWriter(schema, overwrite)


def _leave_profiles_out() -> None:
    """Has the worker that plans a read send no empty profiles of its code.

    Spark 4.3.0 takes them for an unknown answer, with which `spark-pipelines` fails after a completed run: SPARK-59135.
    """
    for profile in (SpecialAccumulatorIds.SQL_UDF_PROFIER, SpecialAccumulatorIds.SQL_UDF_PROFIER_V2):
        _accumulatorRegistry.pop(profile, None)


def _sink(options: MutableMapping[str, str]) -> DataSource:
    try:
        from mqbroker_client.contrib import spark  # the client is a separate package, not needed for reading
    except ImportError as missing:
        raise OptionRefused("Writing needs the client: pip install mqbroker-client.") from missing
    return spark.MessageSink(options)
