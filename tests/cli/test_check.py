"""`./mq check` compares models with their migrations, and needs no server for that."""

from mqbroker.embedded.environment import common
from tests.broker import forks
from tests.broker.ports import free_port
from tools.check import STEPS

CLOSED = f"postgresql://mqbroker@127.0.0.1:{free_port()}/mqbroker"


def migrations() -> tuple[int, str]:
    """The step's exit code, and all that it says, where no database answers."""
    environment = common() | {"DATABASE_URL": CLOSED}
    done = forks.run(STEPS["migrations"], environment)
    return done.returncode, done.stdout + done.stderr


def test_models_are_compared_with_their_migrations_without_a_database() -> None:
    assert migrations() == (0, "No changes detected\n")
