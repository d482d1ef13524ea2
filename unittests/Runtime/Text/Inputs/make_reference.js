// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes reference.json: what Hugging Face's own library makes of each text of
// cases.json with each tokenizer of variants.json: the ids with special tokens,
// their text where it is not the case itself, and the text without special
// tokens where it is not the former. Run it in this folder after `npm install
// tokenizers@0.23.2` somewhere on the module path.

const fs = require('fs');
const {Tokenizer} = require('tokenizers');

const read = (name) => JSON.parse(fs.readFileSync(name, 'utf8'));

async function main() {
  const cases = read('cases.json');
  const lines = [];
  for (const [name, variant] of Object.entries(read('variants.json'))) {
    const file = read(`${variant.base}.json`);
    const model = {...file.model, ...variant.changes.model};
    const tokenizer = Tokenizer.fromString(
        JSON.stringify({...file, ...variant.changes, model}));
    const results = [];
    for (const text of cases) {
      const encoding =
          await tokenizer.encode(text, null, {addSpecialTokens: true});
      const ids = encoding.getIds();
      const decoded = await tokenizer.decode(ids, false);
      const plain = await tokenizer.decode(ids, true);
      results.push({
        ids,
        text: decoded === text ? undefined : decoded,
        plain: plain === decoded ? undefined : plain,
      });
    }
    lines.push(`${JSON.stringify(name)}: [\n${
        results.map((result) => JSON.stringify(result)).join(',\n')}\n]`);
  }
  fs.writeFileSync('reference.json', `{\n${lines.join(',\n')}\n}\n`);
}

main();
