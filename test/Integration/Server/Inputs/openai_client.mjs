// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the package `openai` of npm gets of the server OPENAI_BASE_URL.

import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({maxRetries: 0});
const model = 'served';
const messages = [{role: 'user', content: 'Who is a hacker?'}];
const tools = [{
  type: 'function',
  function: {
    name: 'look_up',
    parameters: {
      type: 'object',
      properties: {word: {type: 'string', maxLength: 8}},
      required: ['word'],
      additionalProperties: false,
    },
  },
}];

const models = await client.models.list();
assert.deepEqual(models.data.map(each => each.id), [model]);

const completion = await client.completions.create(
    {model, prompt: 'A hacker is', max_tokens: 8, ignore_eos: true});
assert.equal(completion.usage.completion_tokens, 8);
assert.equal(completion.choices[0].finish_reason, 'length');

let text = '';
for await (const chunk of await client.completions.create(
    {model, prompt: 'A hacker is', max_tokens: 8, stream: true}))
  text += chunk.choices[0].text;
assert.ok(text);

const chat = await client.chat.completions.create(
    {model, messages, max_completion_tokens: 8, logprobs: true});
assert.equal(chat.choices[0].message.role, 'assistant');
assert.ok(chat.choices[0].logprobs.content.length > 0);

// The client puts the chunks together by itself.
const runner = client.chat.completions.stream(
    {model, messages, max_completion_tokens: 8, seed: 1,
     stream_options: {include_usage: true}});
let streamed = '';
runner.on('content', piece => { streamed += piece; });
const final = await runner.finalChatCompletion();
assert.equal(final.choices[0].message.content ?? '', streamed);
assert.ok(final.usage.completion_tokens > 0);

// Leaves within a stream, and before a whole answer.
const left = await client.chat.completions.create(
    {model, messages, stream: true, ignore_eos: true});
for await (const chunk of left) {
  assert.ok(chunk.choices);
  break;
}
const controller = new AbortController();
const whole = client.completions.create(
    {model, prompt: 'A', max_tokens: 8000, ignore_eos: true},
    {signal: controller.signal});
setTimeout(() => controller.abort(), 200);
await assert.rejects(whole, OpenAI.APIUserAbortError);

const called = await client.chat.completions.create(
    {model, messages, tools, tool_choice: 'required', seed: 1});
const [call] = called.choices[0].message.tool_calls;
assert.equal(called.choices[0].finish_reason, 'tool_calls');
assert.equal(call.function.name, 'look_up');
assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)), ['word']);

const structured = await client.chat.completions.create({
  model, messages, seed: 2,
  response_format: {
    type: 'json_schema',
    json_schema: {name: 'x', strict: true,
                  schema: tools[0].function.parameters},
  },
});
assert.deepEqual(
    Object.keys(JSON.parse(structured.choices[0].message.content)), ['word']);

async function refusal(request, using = client) {
  try {
    await using.chat.completions.create({model, messages, ...request});
  } catch (error) {
    return error;
  }
  assert.fail('it was taken');
}
let error = await refusal({temperature: 101});
assert.ok(error instanceof OpenAI.BadRequestError);
assert.equal(error.param, 'temperature');
error = await refusal({max_completion_tokens: 2 ** 30});
assert.equal(error.code, 'context_length_exceeded');
error = await refusal({model: 'gpt-9'});
assert.ok(error instanceof OpenAI.NotFoundError);
assert.equal(error.code, 'model_not_found');
error = await refusal({}, new OpenAI({apiKey: 'wrong', maxRetries: 0}));
assert.ok(error instanceof OpenAI.AuthenticationError);
assert.equal(error.code, 'invalid_api_key');
