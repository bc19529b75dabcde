"""Reads named SQL statements: one per file, in the `sql` folder of the app that owns the table."""

from pathlib import Path

from psycopg.sql import SQL


class Statement:
    """The statement of one `.sql` file, read once; what stands above it in comments stays in the file."""

    __slots__ = ("name", "text")

    def __init__(self, beside: str, name: str) -> None:
        app = next(folder for folder in Path(beside).parents if (folder / "sql").is_dir())
        path = app / "sql" / f"{name}.sql"
        lines = path.read_text(encoding="utf-8").splitlines()
        self.name = name
        self.text = "\n".join(line for line in lines if not line.lstrip().startswith("--")).strip()

    def sql(self) -> SQL:
        """The statement as psycopg's own type, for cursors that take nothing else."""
        return SQL(self.text)
