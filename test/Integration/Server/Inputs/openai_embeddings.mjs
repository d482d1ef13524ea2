// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the package `openai` of npm gets of a model that embeds. Prints the
// vectors as JSON.

import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({maxRetries: 0});
const model = 'bert';
const input = ['a b c', 'z', 'h e l l o'];

// Asks for base64 by itself.
const answer = await client.embeddings.create({model, input});
assert.deepEqual(answer.data.map(each => each.index), [0, 1, 2]);
assert.equal(answer.usage.prompt_tokens, 15);

const floats = await client.embeddings.create(
    {model, input: input[0], encoding_format: 'float'});
floats.data[0].embedding.forEach(
    (value, i) => assert.ok(Math.abs(value - answer.data[0].embedding[i]) <
                            1e-6));

await assert.rejects(
    client.embeddings.create({model, input: Array(70).fill('a').join(' ')}),
    OpenAI.BadRequestError);

console.log(JSON.stringify(answer.data.map(each => each.embedding)));
