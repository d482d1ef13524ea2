// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// jinja_npm.mjs MODULE: what npm's @huggingface/jinja, whose folder MODULE is,
// makes of cases from standard input, as render-templates does with ours.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { Template } = createRequire(import.meta.url)(process.argv[2]);

// The clock of render-templates.
globalThis.Date = class extends Date {
  constructor(...fields) {
    super(...(fields.length ? fields : [2024, 6, 26, 15, 4, 5]));
  }
};

function render({ template, variables, trusted }) {
  try {
    return {
      text: new Template(template).render({ ...trusted, ...variables }),
    };
  } catch (error) {
    return { error: String(error.message) };
  }
}

const cases = JSON.parse(readFileSync(0, "utf-8"));
process.stdout.write(JSON.stringify(cases.map(render)));
