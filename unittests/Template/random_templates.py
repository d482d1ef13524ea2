# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Random templates: expressions of all kinds, right and wrong, and statements
with all kinds of whitespace around them."""

import json

VARIABLES = {
    "n": 7,
    "z": 0,
    "f": 2.5,
    "t": True,
    "nil": None,
    "s": "Hello, World",
    "u": "Größe \u4e16\u754c \U0001f600 ß",
    "q": "it's \"<b>\" & \\n",
    "w": "  two  words \n\tand a line\r\nend ",
    "e": "",
    "l": [3, 1, 2],
    "ls": ["b", "A", "c", "a"],
    "mixed": [1, "a", None, 2.5, True, [1, 2], {"k": "v"}],
    "d": {"b": 1, "a": "x", "C": [1, 2], "items": 5},
    "rows": [
        {"name": "Bob", "age": 30, "tags": ["x", "y"], "in": {"k": 1}},
        {"name": "alice", "age": 25, "tags": [], "in": {"k": None}},
        {"name": "Bob", "age": 25.5, "in": {}},
        {"age": 1, "name": "dora"},
    ],
    "nested": {"x": {"y": [{"z": "deep"}]}},
}

NAMES = list(VARIABLES) + ["missing", "item", "v"]
STRINGS = ["", " ", "a", "b,c,,d", "Hello", "l", "o", "x-y z", "ß", "世", "A\nb\n",
           "%s|%5.1f", "%d-%x", "{} {}", "{0}{x}", "{:>5}", "0x1F", " 12 ", "3.9", "1e3",
           "-7", "12abc", "true", "TITLE case (in brackets)", "\u00e9\u0301", "'", '"']
FILTERS = ["abs", "capitalize", "count", "default", "d", "e", "escape", "first", "float",
           "int", "items", "join", "last", "length", "list", "lower", "max", "min", "reverse",
           "round", "safe", "sort", "string", "sum", "title", "tojson", "trim", "unique",
           "upper", "wordcount", "dictsort", "forceescape"]
TESTS = ["boolean", "callable", "defined", "even", "false", "float", "integer", "iterable",
         "lower", "mapping", "none", "number", "odd", "sequence", "string", "true",
         "undefined", "upper", "escaped"]
COMPARING_TESTS = ["eq", "equalto", "ne", "lt", "lessthan", "gt", "greaterthan", "le", "ge",
                   "in", "sameas", "divisibleby"]
METHODS = {
    "capitalize": 0, "lower": 0, "upper": 0, "title": 0, "swapcase": 0, "strip": 0,
    "lstrip": 0, "rstrip": 0, "split": 0, "rsplit": 0, "splitlines": 0, "isalpha": 0,
    "isdigit": 0, "isspace": 0, "isupper": 0, "islower": 0, "isalnum": 0, "isascii": 0,
    "isdecimal": 0, "isprintable": 0, "keys": 0, "values": 0, "items": 0, "copy": 0,
    "expandtabs": 0,
    "startswith": 1, "endswith": 1, "find": 1, "rfind": 1, "index": 1, "rindex": 1,
    "count": 1, "partition": 1, "rpartition": 1, "removeprefix": 1, "removesuffix": 1,
    "join": 1, "get": 1, "zfill": 1, "center": 1, "ljust": 1, "rjust": 1, "format": 2,
    "replace": 2,
}
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~"]
COMPARISONS = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]


# Filters with arguments: what is put into each pair of braces, or a random
# expression for nothing.
FILTER_CALLS = [
    ("join(STRING)",),
    ("join(', ', attribute='name')",),
    ("default({}, {})", [], ["true", "false"]),
    ("map({})|list", ["'upper'", "'length'", "'int'", "'string'", "'trim'"]),
    ("map(attribute={})|list", ["'name'", "'age'", "0", "'in.k'", "'tags.0'"]),
    ("map(attribute='tags', default={})|list", ["'?'", "0", "none"]),
    ("select({})|list", ["", "'string'", "'odd'", "'equalto', 1", "'none'"]),
    ("reject({})|list", ["", "'number'", "'defined'", "'in', [1, 'a']"]),
    (
        "selectattr({})|list",
        ["'tags'", "'age', 'gt', 25", "'name', 'equalto', 'Bob'", "'in', 'defined'"],
    ),
    ("rejectattr('name', 'in', ['Bob', 'x'])|map(attribute='age')|list",),
    (
        "tojson(indent={}, sort_keys={})",
        ["0", "2", "4", "'\\t'", "none"],
        ["true", "false"],
    ),
    ("tojson(ensure_ascii={}, separators=(',', ':'))", ["true", "false"]),
    ("replace(STRING, {}{})", ["'-'", "''", "'xyz'", "'ß'"], ["", ", 1", ", 2"]),
    ("indent({})", ["", "2", "first=true", "'> '", "1, true, true"]),
    ("trim(STRING)",),
    (
        "truncate({})",
        ["5", "8, true", "6, false, '..'", "9, leeway=0", "4, true, '', 0"],
    ),
    (
        "sort({})",
        ["", "reverse=true", "case_sensitive=true", "attribute='age'"]
        + ["attribute='name,age'"],
    ),
    ("unique({})|list", ["", "true", "attribute='name'"]),
    (
        "groupby({})",
        ["'name'", "'age'", "'name', case_sensitive=true", "'tags', default='?'"],
    ),
    ("batch({})|list", ["1", "2", "3, '-'"]),
    ("slice({})|list", ["1", "2", "3, '-'"]),
    ("round({})", ["", "1", "2", "-1", "1, 'floor'", "0, 'ceil'"]),
    ("{}({})", ["min", "max"], ["attribute='age'", "true", "case_sensitive=true"]),
    ("int({})", ["7", "base=16", "default=none"]),
    ("float({})", ["1.5"]),
    ("center({})", ["11", "4"]),
    ("sum({})", ["attribute='age'", "start=1", "start=[]"]),
    ("dictsort({})", ["by='value'", "true, reverse=true"]),
    ("format({})", ["1, 2", "x=1", "'a', 2.5"]),
    ("attr({})", ["'name'", "'upper'"]),
]


class Expressions:
    """Random expressions. The deeper, the simpler."""

    def __init__(self, random):
        self.random = random

    def pick(self, things):
        return self.random.choice(things)

    def literal(self):
        kind = self.random.randrange(9)
        if kind < 3:
            return self.string()
        if kind < 5:
            return str(self.random.choice([0, 1, 2, 3, 5, 10, -1, -2, 100, 255]))
        if kind == 5:
            return self.pick(["0.5", "1.0", "2.25", "1e3", "0.1", "1e-7", "1e20", "12345.678"])
        if kind == 6:
            return self.pick(["true", "false", "none", "True", "None"])
        return self.pick(NAMES)

    def string(self):
        text = json.dumps(self.pick(STRINGS), ensure_ascii=self.random.random() < 0.3)
        return text

    def expression(self, depth):
        if depth <= 0:
            return self.literal()
        kind = self.random.randrange(22)
        sub = lambda: self.expression(depth - 1 - self.random.randrange(2))
        if kind < 3:
            return self.literal()
        if kind < 6:
            return f"({sub()} {self.pick(BINARY)} {sub()})"
        if kind == 6:
            return f"{self.literal()} {self.pick(BINARY)} {sub()} {self.pick(BINARY)} {self.literal()}"
        if kind == 7:
            more = f" {self.pick(COMPARISONS)} {sub()}" if self.random.random() < 0.2 else ""
            return f"({sub()} {self.pick(COMPARISONS)} {sub()}{more})"
        if kind == 8:
            return f"({sub()} {self.pick(['and', 'or'])} {self.pick(['', 'not '])}{sub()})"
        if kind == 9:
            other = f" else {sub()}" if self.random.random() < 0.8 else ""
            return f"({sub()} if {sub()}{other})"
        if kind < 13:
            return f"{self.operand(sub)}|{self.filter(sub)}"
        if kind == 13:
            return f"({self.operand(sub)} is {self.pick(['', 'not '])}{self.test()})"
        if kind < 16:
            name = self.pick(list(METHODS))
            arguments = ", ".join(sub() for _ in range(METHODS[name]))
            return f"{self.operand(sub)}.{name}({arguments})"
        if kind == 16:
            return f"{self.operand(sub)}{self.subscript(sub)}"
        if kind == 17:
            items = ", ".join(sub() for _ in range(self.random.randrange(4)))
            return f"[{items}]" if self.random.random() < 0.7 else f"({items},)" if items else "()"
        if kind == 18:
            entries = ", ".join(
                f"{self.pick([self.string(), self.literal()])}: {sub()}"
                for _ in range(self.random.randrange(3))
            )
            return "{" + entries + "}"
        if kind == 19:
            return f"{self.pick(['-', '+', 'not '])}{sub()}"
        if kind == 20:
            return self.pick([
                f"range({sub()})|list", f"range({self.literal()}, {self.literal()})",
                f"range(1, 10, {self.literal()})|list", f"dict(a={sub()}, b=1)",
                f"namespace(x={sub()}).x", f"range(5){self.subscript(sub)}",
            ])
        return self.pick(["rows", "d", "nested", "mixed", "ls"]) + self.path()

    def operand(self, sub):
        return self.pick([self.literal, lambda: f"({sub()})", lambda: self.pick(NAMES)])()

    def path(self):
        return "".join(
            self.pick([".name", ".a", ".items", "['a']", "[0]", "[-1]", ".x.y", ".k", "['C']", ".0", "[item]"])
            for _ in range(self.random.randrange(1, 3))
        )

    def subscript(self, sub):
        if self.random.random() < 0.5:
            part = lambda: self.pick(["", "0", "1", "-1", "2", "-2", "n", sub()])
            step = self.pick(["", "", ":", ":2", ":-1", ":-2"])
            return f"[{part()}:{part()}{step}]"
        return f"[{sub()}]"

    def test(self):
        if self.random.random() < 0.7:
            return self.pick(TESTS)
        return f"{self.pick(COMPARING_TESTS)}({self.literal()})"

    def filter(self, sub):
        if self.random.random() < 0.5:
            return self.pick(FILTERS)
        form, *choices = self.pick(FILTER_CALLS)
        return form.format(
            *(self.pick(each) if each else sub() for each in choices)
        ).replace("STRING", self.string())


class Statements:
    """Random templates of statements."""

    def __init__(self, random):
        self.random = random
        self.expressions = Expressions(random)

    def pick(self, things):
        return self.random.choice(things)

    def text(self):
        return "".join(
            self.pick(["x", " ", "  ", "\n", "\n\n", " \n", "\t", "text", "{", "}", "%", "#", "ü", "\r\n", "\u00a0"])
            for _ in range(self.random.randrange(4))
        )

    def tag(self, inside):
        begin = self.pick(["{%", "{%", "{%-", "{%+"])
        end = self.pick(["%}", "%}", "-%}", "+%}"])
        return f"{begin} {inside} {end}"

    def value(self):
        return self.expressions.expression(self.random.randrange(2))

    def output(self):
        return f"{self.pick(['{{', '{{-', '{{'])} {self.value()} {self.pick(['}}', '-}}', '}}'])}"

    def comment(self):
        return (
            self.pick(["{#", "{#-", "{#+"])
            + self.pick([" c ", "", "{{", " a\nb "])
            + self.pick(["#}", "-#}", "+#}"])
        )

    def body(self, depth, inside_loop):
        return "".join(
            self.text() + self.statement(depth, inside_loop)
            for _ in range(self.random.randrange(1, 4))
        ) + self.text()

    def statement(self, depth, inside_loop):
        kind = self.random.randrange(16)
        if depth <= 0 or kind < 3:
            return self.output()
        block = lambda loop=inside_loop: self.body(depth - 1, loop)
        if kind == 3:
            return self.comment()
        if kind == 4:
            return (self.pick(["{% raw %}", "{%- raw -%}", "{% raw -%}"])
                    + self.text() + "{{ not }}" + self.text()
                    + self.pick(["{% endraw %}", "{%- endraw -%}", "{%+ endraw +%}"]))
        if kind < 7:
            other = ""
            if self.random.random() < 0.4:
                other += self.tag(f"elif {self.value()}") + block()
            if self.random.random() < 0.5:
                other += self.tag("else") + block()
            return self.tag(f"if {self.value()}") + block() + other + self.tag("endif")
        if kind < 10:
            target = self.pick(["item", "item", "k, item", "(k, item)"])
            source = self.pick(["l", "ls", "rows", "d", "d.items()", "mixed", "range(3)", "s[:3]", "[]", "missing", "[[1, 2], [3, 4]]", "d|dictsort", "ls|map('upper')", "nil"])
            if "," in target and self.random.random() < 0.8:
                source = self.pick(["d.items()", "[[1, 2], (3, 4)]", "d|dictsort", "d|items"])
            test = self.pick(["", "", "", " if item", f" if {self.value()}", " if loop is defined"])
            inner = self.text() + self.pick(["{{ item }}", "{{ loop.index }}/{{ loop.length }}", "{{ loop.last }}", "{{ loop.previtem }}", "{{ loop.cycle('a', 'b') }}", "{{ loop.changed(item) }}", "{{ loop.revindex0 }}", "{{ loop.nextitem is defined }}", ""])
            if self.random.random() < 0.15:
                inner += self.tag("if loop.index == 2") + self.tag(self.pick(["break", "continue"])) + self.tag("endif")
            other = self.tag("else") + block() if self.random.random() < 0.3 else ""
            return (self.tag(f"for {target} in {source}{test}") + inner + block(True) + other
                    + self.tag("endfor"))
        if kind < 12:
            # Names that no variable has: jinja2 takes a variable for undefined
            # in a block before the template sets it behind the block.
            name = self.pick(["item", "v", "w2", "k"])
            if self.random.random() < 0.3:
                return self.tag(f"set {name}{self.pick(['', ' | upper', ' | trim | length'])}") + block() + self.tag("endset")
            return self.tag(f"set {name} = {self.value()}")
        if kind == 12:
            return (self.tag("set ns = namespace(v=0, w='')")
                    + self.tag("for item in l") + self.tag(f"set ns.v = ns.v + {self.pick(['item', '1', 'loop.index'])}")
                    + self.tag("endfor") + "{{ ns.v }}")
        if kind == 13:
            parameters = self.pick(["", "a", "a, b=1", "a='x', b=none", "a, b=a"])
            arguments = self.pick(["", "1", "1, 2", "b=3", "1, b=2", "*l", "**{'a': 1}", "1, 2, 3", "c=1"])
            inside = self.pick(["{{ a }}|{{ b }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller }}", "{{ n }}"])
            macro = self.tag(f"macro m({parameters})") + inside + block(False) + self.tag("endmacro")
            if self.random.random() < 0.3:
                return macro + self.tag(f"call m({arguments})") + block(False) + self.tag("endcall")
            return macro + f"{{{{ m({arguments}) }}}}"
        if kind == 14:
            return self.tag(f"with item = {self.value()}, v = item") + block() + self.tag("endwith")
        return self.tag("filter " + self.pick(["upper", "trim", "length", "replace('x', 'yy')|lower"])) + block() + self.tag("endfilter")

    def template(self):
        return self.body(self.random.randrange(1, 4), False)


def random_expression(random):
    return "{{ " + Expressions(random).expression(random.randrange(1, 5)) + " }}"


def random_template(random):
    return Statements(random).template()
