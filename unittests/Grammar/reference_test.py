# Part of the Sandwich project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Grammars of JSON schemas against Python's jsonschema.

FOLLOW_GRAMMAR names the program that runs grammars. Schemas are random, and so
are their values, which are made here without a grammar. Whatever the grammar
writes or accepts must satisfy the schema, and it must accept each value that
satisfies the schema and has its properties in the schema's order.
"""

import decimal
import json
import os
import random
import subprocess
import unittest

try:
    import jsonschema
except ModuleNotFoundError:
    raise unittest.SkipTest("needs jsonschema") from None

FOLLOW_GRAMMAR = os.environ["FOLLOW_GRAMMAR"]
NAMES = ["a", "b", "ab", "name", "\u00e9", "x y", 'q"', ""]
PATTERNS = [
    ("^[a-c]{1,3}$", ["a", "abc", "cb"]),
    ("b+", ["b", "abba", "\n b"]),
    ("^\\d{2}-\\w*$", ["12-", "00-a_Z9"]),
    ("^(?:x|yz)*\u20ac", ["\u20ac", "xyz\u20acq"]),
    ('^"', ['"', '"\\"']),
]
FORMATS = [
    ("date", ["2024-02-29", "1999-12-31"]),
    ("ipv4", ["127.0.0.1", "255.0.10.99"]),
    ("ipv6", ["::1", "2001:db8::8a2e:370:7334"]),
    ("uuid", ["123e4567-e89b-12d3-a456-426614174000"]),
    ("email", ["a@example.com", "a.b+c@x.org"]),
]


def number(text):
    """Numbers as they are written, so that no rounding hides a difference."""
    return decimal.Decimal(text)


class SchemaWriter:
    """Random schemas, and random values of each."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def word(self, least=0, most=5):
        letters = 'abz09 "\\/\n\u00e9\u20ac\U0001f600'
        count = self.random.randint(least, most)
        return "".join(self.random.choice(letters) for _ in range(count))

    def document(self):
        schema = self.schema(3)
        if not isinstance(schema, dict):
            return schema
        # Recursive, and not without an end.
        schema["$defs"] = {
            "list": {"type": "array", "items": {"$ref": "#/$defs/list"}},
            "tree": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
                },
                "required": ["value"],
                "additionalProperties": False,
            },
        }
        return schema

    def schema(self, depth):
        kinds = ["string", "text", "integer", "number", "constant", "any"]
        if depth > 0:
            kinds += ["array", "object", "object", "either", "reference", "all"]
        return getattr(self, self.random.choice(kinds))(depth)

    def some(self, **keywords):
        return {
            key: value for key, value in keywords.items() if self.random.random() < 0.5
        }

    def any(self, depth):
        return self.random.choice([True, {}, {"type": ["boolean", "null", "integer"]}])

    def constant(self, depth):
        values = [1, -2.5, "a", 'b"', None, True, [1, "x"], {"k": [None]}, 10**15]
        if self.random.random() < 0.3:
            return {"const": self.random.choice(values)}
        return {"enum": self.random.sample(values, 3)}

    def string(self, depth):
        least = self.random.randint(0, 2)
        return {
            "type": "string",
            **self.some(minLength=least, maxLength=least + self.random.randint(0, 4)),
        }

    def text(self, depth):
        if self.random.random() < 0.5:
            return {"type": "string", "pattern": self.random.choice(PATTERNS)[0]}
        return {"type": "string", "format": self.random.choice(FORMATS)[0]}

    def word_bounds(self, integer):
        least = self.random.choice([-1000, -105, -7, 0, 3, 98])
        most = least + self.random.choice([0, 1, 12, 205, 100000])
        if not integer:
            least += self.random.choice([0, 0.5, 0.25])
            most += self.random.choice([0.75, 0.125])
        low = self.random.choice(["minimum", "exclusiveMinimum"])
        high = self.random.choice(["maximum", "exclusiveMaximum"])
        if integer and low != "minimum" and high != "maximum":
            most += 2
        elif integer and (low != "minimum" or high != "maximum"):
            most += 1
        return self.some(**{low: least, high: most})

    def integer(self, depth):
        return {"type": "integer", **self.word_bounds(True)}

    def number(self, depth):
        return {"type": "number", **self.word_bounds(False)}

    def word_list(self, count):
        return self.random.sample(NAMES, count)

    # Values without keywords of their own.
    def word_schema(self):
        return {"type": self.random.choice(["string", "boolean", "null"])}

    def array(self, depth):
        schema = {"type": "array", **self.some(items=self.schema(depth - 1))}
        if self.random.random() < 0.3:
            count = self.random.randint(1, 2)
            schema["prefixItems"] = [self.schema(depth - 1) for _ in range(count)]
        least = self.random.randint(0, 2)
        schema.update(
            self.some(minItems=least, maxItems=least + self.random.randint(0, 3))
        )
        return schema

    def object(self, depth):
        names = self.word_list(self.random.randint(0, 4))
        schema = {
            "type": "object",
            "properties": {name: self.schema(depth - 1) for name in names},
        }
        if names:
            count = self.random.randint(0, len(names))
            schema["required"] = self.random.sample(names, count)
        others = self.random.choice([None, False, False, self.schema(depth - 1)])
        if others is not None:
            schema["additionalProperties"] = others
        if self.random.random() < 0.2:
            schema["patternProperties"] = {"^n": self.word_schema()}
        return schema

    def either(self, depth):
        count = self.random.randint(1, 3)
        return {"anyOf": [self.schema(depth - 1) for _ in range(count)]}

    def all(self, depth):
        return {
            "allOf": [
                {"type": "object", "properties": {"a": self.schema(depth - 1)}},
                {
                    "properties": {"b": self.word_schema(), "a": self.any(0)},
                    "required": [self.random.choice("ab")],
                },
            ]
        }

    def reference(self, depth):
        return {"$ref": self.random.choice(["#/$defs/list", "#/$defs/tree"])}

    def anything(self, depth=2):
        """Any value, whatever the schema is."""
        kind = self.random.randint(0, 7 if depth > 0 else 5)
        if kind == 6:
            return [self.anything(depth - 1) for _ in range(self.random.randint(0, 3))]
        if kind == 7:
            names = self.random.sample(NAMES, self.random.randint(0, 3))
            return {name: self.anything(depth - 1) for name in names}
        numbers = [-1000, -7, 0, 3, 4, 98, 103, 10**15, 0.5, -6.75, 3.25]
        return [
            None,
            self.random.random() < 0.5,
            self.random.choice(numbers),
            self.word(),
            self.random.choice(self.random.choice(PATTERNS + FORMATS)[1]),
            self.random.randint(-2000, 2000),
        ][kind]

    def value(self, schema, root, depth=6):
        """A value that may well satisfy `schema`."""
        if schema is True or not set(schema) - {"$defs"}:
            return self.anything(1)
        if "$ref" in schema:
            target = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
            return self.value(target, root, depth - 1)
        if "anyOf" in schema:
            members = schema["anyOf"]
            return self.value(
                members[-1] if depth <= 0 else self.random.choice(members),
                root,
                depth - 1,
            )
        if "allOf" in schema:
            first, second = schema["allOf"]
            value = {}
            if self.random.random() < 0.8:
                value["a"] = self.value(first["properties"]["a"], root, depth - 1)
            if self.random.random() < 0.8:
                value["b"] = self.value(second["properties"]["b"], root, depth - 1)
            return value
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kind = schema["type"]
        if isinstance(kind, list):
            kind = self.random.choice(kind)
        return getattr(self, "value_of_" + kind)(schema, root, depth)

    def value_of_null(self, schema, root, depth):
        return None

    def value_of_boolean(self, schema, root, depth):
        return self.random.random() < 0.5

    def value_of_string(self, schema, root, depth):
        for key, known in (("pattern", PATTERNS), ("format", FORMATS)):
            if key in schema:
                return self.random.choice(dict(known)[schema[key]])
        least = schema.get("minLength", 0)
        return self.word(least, schema.get("maxLength", least + 4))

    def bounds_of(self, schema):
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        if low is None:
            low = -5000 if high is None else high - 5000
        return low, low + 5000 if high is None else high

    def value_of_integer(self, schema, root, depth):
        low, high = self.bounds_of(schema)
        return self.random.choice([self.random.randint(low, high), low, high])

    def value_of_number(self, schema, root, depth):
        low, high = self.bounds_of(schema)
        between = round(self.random.uniform(low, high), self.random.randint(0, 4))
        return self.random.choice([between, low, high])

    def value_of_array(self, schema, root, depth):
        first = schema.get("prefixItems", [])
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", least + 2)
        count = least if depth <= 0 else self.random.randint(least, max(least, most))
        return [
            self.value(
                first[i] if i < len(first) else schema.get("items", True),
                root,
                depth - 1,
            )
            for i in range(count)
        ]

    def value_of_object(self, schema, root, depth):
        required = schema.get("required", [])
        value = {
            name: self.value(inner, root, depth - 1)
            for name, inner in schema.get("properties", {}).items()
            if name in required or (depth > 0 and self.random.random() < 0.6)
        }
        others = schema.get("additionalProperties", True)
        if others is not False and self.random.random() < 0.5:
            name = self.random.choice(["other", "z", "nothing", "\u20ac\n"])
            value[name] = self.value(others, root, depth - 1)
        return value


class ReferenceTest(unittest.TestCase):
    def follow(self, cases):
        run = subprocess.run(
            [FOLLOW_GRAMMAR],
            input=json.dumps(cases, ensure_ascii=False),
            capture_output=True,
            encoding="utf-8",
        )
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return json.loads(run.stdout)

    def validator(self, schema):
        exact = json.loads(json.dumps(schema), parse_float=number)
        kind = jsonschema.Draft202012Validator
        return kind(exact, format_checker=jsonschema.FormatChecker())

    def test_random_schemas(self):
        cases, made = [], []
        for seed in range(300):
            writer = SchemaWriter(seed)
            schema = writer.document()
            root = schema if isinstance(schema, dict) else {}
            values = [writer.value(schema, root) for _ in range(20)]
            others = [writer.anything() for _ in range(20)]
            texts = [
                json.dumps(value, ensure_ascii=False, separators=separators)
                for value, separators in zip(
                    values + others, [(",", ":"), (", ", ": ")] * 20
                )
            ]
            made.append(len(values))
            cases.append({"schema": schema, "texts": texts, "walks": 15, "seed": seed})
        counts = {"accepted": 0, "refused": 0, "walked": 0}
        for case, count, result in zip(cases, made, self.follow(cases)):
            with self.subTest(schema=json.dumps(case["schema"])):
                self.check(case, count, result, counts)
        self.assertGreater(counts["accepted"], 3000)
        self.assertGreater(counts["refused"], 3000)
        self.assertGreater(counts["walked"], 2500)

    def check(self, case, count, result, counts):
        validator = self.validator(case["schema"])
        if "error" in result:
            # Alternatives of which none can be.
            self.assertEqual(result["error"], "no text satisfies the grammar")
            for text in case["texts"]:
                self.assertFalse(validator.is_valid(json.loads(text)), text)
            return
        for i, (text, accepted) in enumerate(zip(case["texts"], result["accepted"])):
            valid = validator.is_valid(json.loads(text, parse_float=number))
            if accepted or i < count:
                self.assertEqual(accepted, valid, text)
            counts["accepted" if accepted else "refused"] += 1
        for text in result["walked"]:
            value = json.loads(text, parse_float=number)
            self.assertEqual(list(validator.iter_errors(value)), [], text)
            counts["walked"] += 1


if __name__ == "__main__":
    unittest.main()
