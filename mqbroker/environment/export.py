"""Settings of the export: when the nightly export runs, and how far it lowers its priority."""

from datetime import time

from mqbroker.environment import env

JDBC_JAR = env.text(
    "JDBC_JAR", "", "PostgreSQL's driver for `./mq export --reader jdbc`; empty: the system's, else Ivy fetches one."
)
EXPORT_NICE = env.whole(
    "EXPORT_NICE", 19, "How far exports and reports give way; on a busy machine 0: not.", maximum=19
)
EXPORT_NIGHTLY_TO = env.text(
    "EXPORT_NIGHTLY_TO",
    "",
    "Folder of the nightly export, its reports beside it; empty: none. All workers with the extra `analytics` need it.",
)
EXPORT_NIGHTLY_AT = env.time_of_day(
    "EXPORT_NIGHTLY_AT", time(2, 0), "When the nightly export begins, in UTC; for six hours it is tried again."
)
EXPORT_NIGHTLY_MAX_SECONDS = env.whole(
    "EXPORT_NIGHTLY_MAX_SECONDS", 4 * 3600, "Time after which the nightly export or its reports are ended.", minimum=1
)
