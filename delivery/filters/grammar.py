"""The grammar of an SQL filter: a subset of SQL-92, read by lark into a tree whose leaves are operands.

A filter outside the subset is refused with the position of the word. Words like `order`, `date` or `key` may be names
of properties. The grammar also accepts illegal comparisons like `1 < price < 5`, so that `predicates` can refuse them
with a better reason.
"""

from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from typing import NoReturn

from lark import Lark, Token, Tree, UnexpectedToken

from store.errors import FilterIllegal

# The greatest depth of parentheses. Each level takes about 5 of Python's 1,000 stack frames when the predicates are
# built.
MAX_DEPTH = 16
# The most conditions (comparison, BETWEEN, IN, IS NULL) of a filter. Each costs up to 0.7 µs per message.
MAX_CONDITIONS = 64
# The most words of a filter: names, literals, signs, operators, commas and parentheses.
MAX_WORDS = 1000

ALLOWED = (
    "A filter has names of properties, numbers, 'text', TRUE, FALSE, =, <>, <, <=, >, >=, BETWEEN, IN, IS [NOT] NULL, "
    "AND, OR, NOT and parentheses"
)
GRAMMAR = r"""
    ?start: either
    ?either: both (_OR both)*
    ?both: negation (_AND negation)*
    ?negation: equality | _NOT equality -> negation
    ?equality: order | equality EQUALITY order -> comparison
    ?order: test | order ORDER test -> comparison
    ?test: part
        | test _BETWEEN part _AND part      -> between
        | test _NOT _BETWEEN part _AND part -> not_between
        | test _IN part                     -> is_in
        | test _NOT _IN part                -> is_not_in
        | test _IS part                     -> is_null
        | test _IS _NOT part                -> is_not_null
    ?part: operand | group
    group: _OPEN either (_COMMA either)* _CLOSE
    operand: NAME | QUOTED | SIGN* NUMBER | TEXT | BOOLEAN | NULL

    EQUALITY.1: "=" | "<>"
    ORDER: "<=" | ">=" | "<" | ">"
    _OPEN: "("
    _CLOSE: ")"
    _COMMA: ","
    // RocketMQ's names, and letters of every alphabet; any other name stands in double quotes.
    NAME: /(?!\d)[\w$]+/
    QUOTED: /"(?:[^"]|"")*+"/
    TEXT.1: /'(?:[^']|'')*+'/
    NUMBER: /[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]*)?/
    // SIGN is a point too: a number may begin with one.
    SIGN: /[-+.]/
    // What is not in the subset: kept, so that it is refused as a whole word at its place.
    NOT_EQUAL.1: "!="
    UNCLOSED.-1: /['"]|\/\*/
    FOREIGN.2: /[nN]'[^']*'|==|=>|<=>|\|\||&&|::/
    OTHER.-2: /./s
    %declare _AND _OR _NOT _IN _IS _BETWEEN BOOLEAN NULL

    %ignore /\s+/
    %ignore /--[^\n\r]*/
    %ignore /\/\*.*?\*\//s
"""
KEYWORDS = {word: f"_{word}" for word in ("AND", "OR", "NOT", "IN", "IS", "BETWEEN")}
KEYWORDS |= {"TRUE": "BOOLEAN", "FALSE": "BOOLEAN", "NULL": "NULL"}
CONDITIONS = frozenset(("EQUALITY", "ORDER", "_BETWEEN", "_IN", "_IS"))
OPERATORS = CONDITIONS | {"_AND", "_OR", "_COMMA", "_CLOSE"}
OPERAND_BEGINS = frozenset(("NAME", "QUOTED", "NUMBER", "TEXT", "BOOLEAN", "NULL"))
OPERAND_ENDS = OPERAND_BEGINS | {"_CLOSE"}
REFUSED = {
    "NOT_EQUAL": "write <>",
    "UNCLOSED": "it is never closed",
    "FOREIGN": "it is not allowed",
    "OTHER": "it is not allowed",
    "SIGN": "it is not allowed",
}


def read(sql: str) -> Tree[Token]:
    """The structure of a filter, as a tree.

    Raises FilterIllegal with the position of the first word that is not allowed there.
    """
    try:
        return _parser().parse(sql)
    except UnexpectedToken as problem:
        _explain(sql, problem)


def refuse(written: str, position: int, reason: str) -> NoReturn:
    """Raises FilterIllegal for a word of the filter, with its position counted from 1."""
    raise FilterIllegal(
        f"The filter cannot be used: {written[:40]} at position {position}: {reason}. {ALLOWED}.", position=position
    )


class Limits:
    """Passes a filter's words on to the parser; refuses too many words, conditions or open parentheses."""

    # Words that SQL has and this grammar does not allow. They are listed because lark drops unused words from its
    # lexer.
    always_accept = tuple(REFUSED)

    def process(self, words: Iterator[Token]) -> Iterator[Token]:
        conditions = depth = 0
        for count, word in enumerate(words, 1):
            conditions += word.type in CONDITIONS
            depth += (word.type == "_OPEN") - (word.type == "_CLOSE")
            if count > MAX_WORDS:
                _refuse(word, f"the filter has more than {MAX_WORDS} words")
            if conditions > MAX_CONDITIONS:
                _refuse(word, f"the filter has more than {MAX_CONDITIONS} conditions")
            if depth > MAX_DEPTH:
                _refuse(word, f"more than {MAX_DEPTH} parentheses are open")
            yield word


def _keyword(name: Token) -> Token:
    return name.update(type=KEYWORDS.get(name.upper(), name.type))


@cache
def _parser() -> Lark:
    """The parser, made at the first filter: making it takes 30 ms, and most processes never parse a filter."""
    return Lark(GRAMMAR, parser="lalr", lexer="basic", postlex=Limits(), lexer_callbacks={"NAME": _keyword})


def _explain(sql: str, problem: UnexpectedToken) -> NoReturn:
    """Raises FilterIllegal, with the reason, for the first word that is not allowed at its position."""
    word = problem.token
    if word.type == "$END":
        _explain_end(sql)
    before = _last(sql[: word.start_pos])
    if before is not None and before.type == "SIGN":
        _refuse_number(sql, word)
    if reason := REFUSED.get(word.type):
        refuse(sql[word.start_pos :] if word.type == "UNCLOSED" else word, _position(word), reason)
    _refuse(word, _misplaced(sql, word, before))


def _last(sql: str) -> Token | None:
    return next(iter(reversed([*_parser().lex(sql)])), None)


def _explain_end(sql: str) -> NoReturn:
    last = _last(sql)
    if last is None:
        raise FilterIllegal(f"The filter is empty. {ALLOWED}.", position=1)
    if last.type == "SIGN":
        _refuse(last, "a number is expected after it")
    opened = _open_parentheses(sql)
    if opened and last.type in OPERAND_ENDS:
        _refuse(opened[-1], "it is never closed")
    _refuse(last, "something is missing after it")


def _misplaced(sql: str, word: Token, before: Token | None) -> str:
    follows_operand = before is not None and before.type in OPERAND_ENDS
    if follows_operand and word.type in OPERAND_BEGINS:
        return "an operator is expected here"
    if follows_operand and word.type == "_OPEN":
        return "there are no functions here"
    if before is not None and before.type == word.type == "_NOT":
        return "NOT follows NOT"
    if not follows_operand and word.type in OPERATORS:
        return "something is missing before it"
    if word.type == "_CLOSE" and not _open_parentheses(sql[: word.start_pos]):
        return "it was never opened"
    return "it cannot stand here"


def _refuse_number(sql: str, word: Token) -> NoReturn:
    """Raises FilterIllegal for a sign without a number after it."""
    words = reversed([*_parser().lex(sql[: word.start_pos])])
    *_, first = takewhile(lambda before: before.type == "SIGN", words)
    refuse(sql[first.start_pos : word.end_pos], _position(first), "it is no number")


def _open_parentheses(sql: str) -> list[Token]:
    opened: list[Token] = []
    for word in _parser().lex(sql):
        if word.type == "_OPEN":
            opened.append(word)
        elif word.type == "_CLOSE" and opened:
            opened.pop()
    return opened


def _refuse(word: Token, reason: str) -> NoReturn:
    refuse(word, _position(word), reason)


def _position(word: Token) -> int:
    assert word.start_pos is not None
    return word.start_pos + 1
