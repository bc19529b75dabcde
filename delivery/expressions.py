"""Expressions: reads the text of an SQL filter and holds it to the subset of SQL-92 that a filter may use.

sqlglot splits the text and finds its structure; what stands between the operators stays ours. Its parser gets each
operand as a mere number, so that no function, type or other word of its dialects can come in, every refusal knows its
position, and words such as `order`, `date` or `key` are names of properties like any other.
"""

import re
from dataclasses import dataclass, field
from decimal import Decimal, DecimalException
from typing import Any, Literal, NoReturn

from sqlglot import ErrorLevel, ParseError, Parser, Token, TokenError, Tokenizer, TokenType, exp

from store.errors import FilterIllegal

# Parentheses within parentheses: the parser takes some 25 frames of Python's 1,000 for each.
MAX_DEPTH = 16
# Comparisons, BETWEEN, IN and IS NULL: each costs up to 0.7 µs per message that is looked at.
MAX_CONDITIONS = 64
# Names, literals, operators, commas and parentheses: a thousand take some 12 ms to read, once.
MAX_WORDS = 1000

ALLOWED = (
    "A filter has names of properties, numbers, 'text', TRUE, FALSE, =, <>, <, <=, >, >=, BETWEEN, IN, IS [NOT] NULL, "
    "AND, OR, NOT and parentheses"
)
STRUCTURE = {
    TokenType.L_PAREN: "(",
    TokenType.R_PAREN: ")",
    TokenType.COMMA: ",",
    TokenType.EQ: "=",
    TokenType.NEQ: "<>",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
    TokenType.BETWEEN: "BETWEEN",
    TokenType.IN: "IN",
    TokenType.IS: "IS",
    TokenType.AND: "AND",
    TokenType.OR: "OR",
    TokenType.NOT: "NOT",
}
CONDITIONS = frozenset(("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN", "IS"))
PREFIXES = (TokenType.DASH, TokenType.PLUS, TokenType.DOT)
# RocketMQ's names, and letters of every alphabet; any other name stands in double quotes.
NAME = re.compile(r"(?!\d)[\w$]+")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
# Everything up to a quote or a comment that is never closed.
CLOSED = re.compile(r"""(?:[^'"/]|'(?:[^']|'')*+'|"(?:[^"]|"")*+"|/(?!\*)|/\*.*?\*/)*+""", re.DOTALL)

Kind = Literal["name", "number", "text", "boolean", "null"]


@dataclass(frozen=True, slots=True)
class Operand:
    """A name or a literal. `value` is the name, a Decimal, a str, a bool, or None for NULL."""

    kind: Kind
    value: Any
    written: str
    position: int


@dataclass(frozen=True, slots=True)
class Expression:
    """A filter's structure, whose leaves are the places of its operands."""

    node: exp.Expr
    operands: list[Operand]
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        names = frozenset(operand.value for operand in self.operands if operand.kind == "name")
        object.__setattr__(self, "names", names)

    def operand(self, node: exp.Expr | None) -> Operand:
        """The operand at a leaf, also within parentheses of its own.

        Raises FilterIllegal for anything else.
        """
        bare = node.unnest() if node is not None else None
        if not isinstance(bare, exp.Column) or not bare.name.isdecimal():
            self.refuse(node, "a name or a literal is expected")
        return self.operands[int(bare.name)]

    def refuse(self, node: exp.Expr | None, reason: str) -> NoReturn:
        """Raises FilterIllegal at the first operand of a part."""
        columns = node.find_all(exp.Column) if node is not None else ()
        first = self.operands[min((int(column.name) for column in columns if column.name.isdecimal()), default=0)]
        refuse(first.written, first.position, reason)


def refuse(written: str, position: int, reason: str) -> NoReturn:
    """Raises FilterIllegal about a word of the filter, with its position counted from 1."""
    raise FilterIllegal(
        f"The filter cannot be used: {written[:40]} at position {position}: {reason}. {ALLOWED}.", position=position
    )


def read(sql: str) -> Expression:
    """The structure of a filter.

    Raises FilterIllegal with the position of the first word that cannot stand where it stands.
    """
    words = Words(sql)
    for token in _tokens(sql):
        words.take(token)
    words.finish()
    # The parser tells where it stopped by the text before it: all of it.
    parser = Parser(error_level=ErrorLevel.IMMEDIATE, error_message_context=len(sql) + 1)
    try:
        nodes = parser.parse_into(exp.Condition, words.structure, sql)
    except ParseError as problem:
        _explain(sql, problem.errors[0])
    assert nodes[0] is not None
    return Expression(nodes[0], words.operands)


def _tokens(sql: str) -> list[Token]:
    try:
        return Tokenizer().tokenize(sql)
    except TokenError as problem:
        closed = CLOSED.match(sql)
        assert closed is not None
        opening = closed.end()
        if opening == len(sql):
            raise FilterIllegal(f"The filter cannot be split into words. {ALLOWED}.", position=1) from problem
        refuse(sql[opening:], opening + 1, "it is never closed")


def _explain(sql: str, problem: dict[str, Any]) -> NoReturn:
    position = len(problem["start_context"] or "") + 1
    missing = str(problem["description"]).startswith("Required keyword")
    reason = "something is missing after it" if missing else "it cannot stand here"
    refuse(problem["highlight"] or sql[position - 1 :], position, reason)


class Words:
    """Goes through a filter's tokens: keeps its operands, and passes on the structure that they stand in."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.operands: list[Operand] = []
        self.structure: list[Token] = []
        self._prefix: list[Token] = []
        self._open: list[Token] = []
        self._conditions = 0
        self._last: str | None = None

    def take(self, token: Token) -> None:
        """The next token.

        Raises FilterIllegal when it is none of the subset, or the filter becomes too deep or too long.
        """
        written = self._written(token)
        if len(self.structure) >= MAX_WORDS:
            self._refuse(token, f"the filter has more than {MAX_WORDS} words")
        if token.token_type in PREFIXES and not self._follows_operand():
            self._prefix.append(token)
        elif self._prefix:
            self._number(token)
        elif STRUCTURE.get(token.token_type) == written.upper():
            self._operator(token, written.upper())
        else:
            self._operand(token, written)

    def finish(self) -> None:
        """Raises FilterIllegal for a filter that is empty or breaks off."""
        if self._prefix:
            self._refuse(self._prefix[0], "a number is expected after it")
        if not self.structure:
            raise FilterIllegal(f"The filter is empty. {ALLOWED}.", position=1)
        if not self._follows_operand():
            self._refuse(self.structure[-1], "something is missing after it")
        if self._open:
            self._refuse(self._open[-1], "it is never closed")

    def _follows_operand(self) -> bool:
        return self._last in ("operand", ")")

    def _operator(self, token: Token, operator: str) -> None:
        if operator == "(":
            self._opening(token)
        elif operator == "NOT":
            if self._last == "NOT":
                self._refuse(token, "NOT follows NOT")
        elif not self._follows_operand() and not (operator in ("IN", "BETWEEN") and self._last == "NOT"):
            self._refuse(token, "something is missing before it")
        elif operator == ")":
            if not self._open:
                self._refuse(token, "it was never opened")
            self._open.pop()
        self._conditions += operator in CONDITIONS
        if self._conditions > MAX_CONDITIONS:
            self._refuse(token, f"the filter has more than {MAX_CONDITIONS} conditions")
        self._last = operator
        self.structure.append(token)

    def _opening(self, token: Token) -> None:
        if self._follows_operand():
            self._refuse(token, "there are no functions here")
        self._open.append(token)
        if len(self._open) > MAX_DEPTH:
            self._refuse(token, f"more than {MAX_DEPTH} parentheses are open")

    def _operand(self, token: Token, written: str) -> None:
        kind = token.token_type
        if kind is TokenType.NUMBER:
            self._number(token)
        elif kind is TokenType.STRING:
            self._add("text", token.text, token)
        elif kind in (TokenType.TRUE, TokenType.FALSE):
            self._add("boolean", kind is TokenType.TRUE, token)
        elif kind is TokenType.NULL:
            self._add("null", None, token)
        elif kind is TokenType.IDENTIFIER or (written == token.text and NAME.fullmatch(written)):
            self._add("name", token.text, token)
        elif kind is TokenType.NEQ:
            self._refuse(token, "write <>")
        else:
            self._refuse(token, "it is not allowed")

    def _number(self, last: Token) -> None:
        """A number with the sign and the point before it, which come as tokens of their own."""
        parts, self._prefix = [*self._prefix, last], []
        written = "".join(map(self._written, parts))
        try:
            value = Decimal(written) if NUMBER.fullmatch(written) else None
        except DecimalException:
            value = None
        if value is None:
            refuse(written, parts[0].start + 1, "it is no number")
        self._add("number", value, parts[0], last)

    def _add(self, kind: Kind, value: Any, first: Token, last: Token | None = None) -> None:
        start, end = first.start, (last or first).end
        written = self.sql[start : end + 1]
        if self._follows_operand():
            refuse(written, start + 1, "an operator is expected here")
        place = str(len(self.operands))
        self.structure.append(Token(TokenType.IDENTIFIER, place, first.line, first.col, start, end))
        self.operands.append(Operand(kind, value, written, start + 1))
        self._last = "operand"

    def _written(self, token: Token) -> str:
        return self.sql[token.start : token.end + 1]

    def _refuse(self, token: Token, reason: str) -> NoReturn:
        refuse(self._written(token), token.start + 1, reason)
