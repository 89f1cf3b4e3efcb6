#!/usr/bin/env node
/**
 * A scripted agent for the tests of the page. It speaks the stream-JSON of Claude Code, and does what its first argument names:
 *
 *   works    writes `work.txt`, and prints text that tries to be harmful
 *   asks     asks which colour, and prints the answer
 *   permit   asks for permission to run a command, and prints whether it has it
 *   long     works and writes until it is ended: it counts its rounds in `work.txt`, and prints what it is told
 *   mends    leaves `sort.txt` broken at first, and mends it in the next attempt
 *   hears    adds all that it is told to `work.txt`
 *   floods   prints lines of 10 MB
 *
 * Configuration: [agents.works] kind = "claude", command = ["node", "<here>/agent.mjs", "works"]
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [behaviour = 'works', ...rest] = process.argv.slice(2);
if (rest.includes('--version')) {
  console.log('2.1.197 (Claude Code)');
  process.exit(0);
}
const named = rest.findIndex((word) => word === '--session-id' || word === '--resume');
const session = named < 0 ? '00000000-0000-4000-8000-000000000000' : rest[named + 1];

let count = 0;
const print = (frame) => process.stdout.write(`${JSON.stringify({ ...frame, session_id: session })}\n`);
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const usage = { input_tokens: 10, output_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };

function content(...blocks) {
  const message = { id: `msg_${process.pid}_${++count}`, type: 'message', role: 'assistant', model: 'scripted', content: blocks, stop_reason: null, stop_sequence: null, usage };
  print({ type: 'assistant', message, parent_tool_use_id: null });
}

async function say(text, pause = 0) {
  for (const word of pause > 0 ? text.split(/(?<=\s)/) : []) {
    print({ type: 'stream_event', event: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: word } }, parent_tool_use_id: null });
    await sleep(pause);
  }
  content({ type: 'text', text });
}

function begin(name, input) {
  const id = `toolu_${process.pid}_${++count}`;
  content({ type: 'tool_use', id, name, input });
  return id;
}

function end(id, output) {
  print({ type: 'user', message: { role: 'user', content: [{ tool_use_id: id, type: 'tool_result', content: output, is_error: false }] }, parent_tool_use_id: null });
}

function write(text, file = 'work.txt') {
  const id = begin('Write', { file_path: `${process.cwd()}/${file}`, content: text });
  writeFileSync(file, text);
  end(id, 'File written');
}

/** Answers to control requests, by their id. */
const waiting = new Map();
async function request(id, name, input) {
  const call = begin(name, input);
  print({ type: 'control_request', request_id: id, request: { subtype: 'can_use_tool', tool_name: name, input, tool_use_id: call } });
  const answer = await new Promise((resolve) => waiting.set(id, resolve));
  end(call, 'answered');
  return answer;
}

const HARMFUL =
  '<img src=x onerror="document.title=1"><b>not bold</b> \x1b[31mred\x1b[0m \u202egnp.exe\u202c \x07 javascript:alert(1) ' +
  'https://example.org/page';

const turns = {
  async works() {
    write(`line one\nline two\nline three\n${HARMFUL}\n`);
    await say(`The work is done. ${HARMFUL}`);
    const id = begin('Bash', { command: `printf '${HARMFUL}'` });
    end(id, `${HARMFUL}\n`.repeat(50) + 'x'.repeat(100_000));
  },
  async asks() {
    const options = [{ label: 'red', description: 'like a brick' }, { label: 'blue', description: 'like the sea' }];
    const answer = await request('q1', 'AskUserQuestion', { questions: [{ question: 'Which colour?', header: 'Colour', options, multiSelect: false }] });
    write('coloured\n');
    await say(`The answer is ${JSON.stringify(answer.updatedInput.answers)}.`);
  },
  async permit() {
    const { behavior, message = '' } = await request('p1', 'Bash', { command: 'rm -rf build \x1b]; rm -rf src', description: 'clean' });
    write(`${behavior}\n`);
    await say(`The decision is ${behavior}. ${message}`);
  },
  async mends() {
    write(existsSync('sort.txt') ? 'mended\n' : 'broken\n', 'sort.txt');
    await say('It should work now.');
  },
  async hears(prompt) {
    write(`${existsSync('work.txt') ? readFileSync('work.txt', 'utf8') : ''}${prompt}\n`);
    await say(`I was told: ${prompt}`);
  },
  async floods() {
    write('flooded\n');
    await say(`${'wide '.repeat(2_000_000)}${HARMFUL}`);
    await say('y'.repeat(10_000_000));
    const id = begin('Bash', { command: `echo ${'z'.repeat(10_000_000)}` });
    end(id, `${HARMFUL}${'w'.repeat(10_000_000)}`);
    await say('It is flooded.');
  },
  async long() {
    for (let round = 1; ; round++) {
      write(`round ${round}\n`);
      await say(`Round ${round} of the long work is done, and the next one begins.`, 40);
      await sleep(1_000);
    }
  },
};

let isAtWork = false;
createInterface({ input: process.stdin }).on('line', (line) => {
  const frame = JSON.parse(line);
  if (frame.type === 'control_response') waiting.get(frame.response?.request_id)?.(frame.response.response);
  else if (frame.type === 'control_request') print({ type: 'control_response', response: { subtype: 'success', request_id: frame.request_id, response: {} } });
  else if (frame.type === 'user') hear(frame);
});

/** A message that comes while it works belongs to the turn that runs. */
function hear(frame) {
  const words = frame.message.content.map((block) => block.text).join('\n');
  print({ ...frame, isReplay: true, parent_tool_use_id: null });
  if (isAtWork && behaviour === 'hears') void turns.hears(words);
  else if (isAtWork) content({ type: 'text', text: `I was told: ${words}` });
  else void turn(words);
}

async function turn(prompt) {
  isAtWork = true;
  print({ type: 'system', subtype: 'init', cwd: process.cwd(), tools: ['Bash'], mcp_servers: [], model: 'scripted', permissionMode: 'default', claude_code_version: '2.1.197' });
  await turns[behaviour](prompt);
  print({ type: 'result', subtype: 'success', is_error: false, api_error_status: null, duration_ms: 1, duration_api_ms: 1, num_turns: 1, result: 'Done.', stop_reason: 'end_turn', total_cost_usd: 0.01, usage, modelUsage: {}, permission_denials: [], terminal_reason: 'completed' });
  isAtWork = false;
}
