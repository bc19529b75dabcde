"""Settings of the export: when the nightly export runs, and how far it lowers its priority."""

from datetime import time

from mqbroker.environment import env

JDBC_JAR = env.text(
    "JDBC_JAR",
    "",
    "PostgreSQL's driver for `./mq export --reader jdbc`; empty: the system's driver, or one that Ivy fetches.",
)
EXPORT_NICE = env.whole(
    "EXPORT_NICE",
    19,
    "The nice value of exports and reports. On a machine that is always busy set 0, so that they get CPU.",
    maximum=19,
)
EXPORT_NIGHTLY_TO = env.text(
    "EXPORT_NIGHTLY_TO",
    "",
    "Folder of the nightly export, with its reports beside it; empty: no nightly export. All workers with the extra "
    "`analytics` need this folder.",
)
EXPORT_NIGHTLY_AT = env.time_of_day(
    "EXPORT_NIGHTLY_AT",
    time(2, 0),
    "Time of day, in UTC, at which the nightly export begins; a failed export is tried again for six hours.",
)
EXPORT_NIGHTLY_MAX_SECONDS = env.whole(
    "EXPORT_NIGHTLY_MAX_SECONDS", 4 * 3600, "Time after which the nightly export or its reports are ended.", minimum=1
)
