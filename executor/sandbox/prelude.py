"""The part of the sandbox that is JavaScript: it runs once per process, before the memory image is taken.

`PRELUDE` evaluates to `[run, finish]`. Both take a text and return a text: `O` + JSON for a result, `E` + JSON
`{message, memory, index, stdout}` for an error; `finish` puts a `P` in front of that while the program has no result
and promise jobs may bring it one. The request of `run` is JSON:

    {"kind": "expressions", "calls": [{"s": source, "v": values, "t": texts, "p": it parsed before}], "seed": [4 x u32]}
        -> O[result, ...]
    {"kind": "code", "calls": [one], "seed": [4 x u32], "console": characters}  -> O, then `finish` -> O[result, stdout]
    {"kind": "check", "source": text, "form": "expression" | "code"}  -> Onull | O"message"

Why user text cannot break out of its wrapping. An expression T must parse as `(T)` and as `[T]`: up to its first
unmatched bracket both read the same tokens, and that bracket would have to be `)` in one and `]` in the other. A body B
must parse as the body of an arrow function in parentheses and as a method body in a class: if B closed its own brace
early, the next token would have to be `,` or `)` for the first, and neither can start a class element.
`throw 0` before the wrapping makes a pure parse of it: nothing behind it ever runs.

User code may spoil the built-ins it shares with this file. It can then only spoil its own answer, which the host checks
like any foreign text; the next evaluation starts from the image again.
"""

PRELUDE = r"""
(function () {
'use strict';
const parse = JSON.parse, stringify = JSON.stringify, text = String, script = eval;

const expression = (s, head) => head + '(function(__v,__t){return (' + s + '\n)})';
const expressionProbe = (s, head) => head + '(function(__v,__t){return [' + s + '\n]})';
// __v and __t are outside of the body: it may declare names like these itself
const body = (s, head) => head + '((__v,__t)=>async()=>{' + s + '\n})';
const bodyProbe = (s, head) => head + '(class{static async m(){' + s + '\n}})';
const PARSE = '"use strict";throw 0;', RUN = '"use strict";';

function describe(error) {
  try {
    if (error !== null && typeof error === 'object' && 'message' in error) {
      return text(error.name || 'Error') + ': ' + text(error.message);
    }
    return 'Error: ' + (typeof error === 'string' ? error : text(stringify(error)));
  } catch (_) { return 'Error: something was thrown that cannot be shown'; }
}

function outOfMemory(error) {
  try { return error instanceof InternalError && error.message === 'out of memory'; } catch (_) { return false; }
}
const InternalError = globalThis.InternalError;

function syntax(program) {
  try { script(program); } catch (error) { return error === 0 ? null : describe(error); }
  return 'SyntaxError: unexpected text';
}

function compile(source, form, probe, probed) {
  const bad = probed ? null : syntax(probe(source, PARSE));
  if (bad !== null) throw { name: 'SyntaxError', message: bad.slice(bad.indexOf(': ') + 2) };
  return script(form(source, RUN));
}

function json(value) {
  const out = stringify(value);
  if (out !== undefined) return out;
  if (value === undefined) return 'null';
  throw new TypeError('the result is a ' + typeof value + ', which is not JSON');
}

function failure(error, index, stdout) {
  return 'E' + stringify({ message: describe(error), memory: outOfMemory(error), index, stdout });
}

// sfc32: small, fast, passes PractRand; Math.random must give the same numbers in a repeated attempt
let a = 0, b = 0, c = 0, d = 0;
function next() {
  const t = (((a + b) | 0) + d) | 0;
  d = (d + 1) | 0;
  a = b ^ (b >>> 9);
  b = (c + (c << 3)) | 0;
  c = ((c << 21) | (c >>> 11)) + t | 0;
  return t >>> 0;
}
Object.defineProperty(Math, 'random', { writable: true, configurable: true, value: function random() {
  return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
} });

let printed = '', room = 0;
function print(...values) {
  if (room < 0) return;
  let line = '';
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    let shown;
    if (typeof value === 'string') shown = value;
    else if (value instanceof Error) shown = describe(value);
    else { try { shown = stringify(value); } catch (_) { } if (shown === undefined) shown = text(value); }
    line += (i ? ' ' : '') + shown;
  }
  line += '\n';
  if (line.length > room) { printed += line.slice(0, room) + '\n[output cut]\n'; room = -1; return; }
  printed += line;
  room -= line.length;
}
globalThis.console = { log: print, info: print, warn: print, error: print, debug: print };

function expressions(calls) {
  let out = '[';
  for (let i = 0; i < calls.length; i++) {
    const call = calls[i];
    try { out += (i ? ',' : '') + json(compile(call.s, expression, expressionProbe, call.p)(call.v, call.t)); }
    catch (error) { return failure(error, i); }
  }
  return 'O' + out + ']';
}

let outcome = null, failed = false;
function code(call) {
  let main;
  try { main = compile(call.s, body, bodyProbe)(call.v, call.t); } catch (error) { return failure(error, 0, ''); }
  (async () => {
    try { outcome = json(await main()); } catch (error) { failed = true; outcome = error; }
  })();
  return 'O';
}

function run(request) {
  const q = parse(request);
  if (q.kind === 'check') {
    const two = q.form === 'code' ? [body, bodyProbe] : [expression, expressionProbe];
    return 'O' + stringify(syntax(two[0](q.source, PARSE)) ?? syntax(two[1](q.source, PARSE)));
  }
  a = q.seed[0]; b = q.seed[1]; c = q.seed[2]; d = q.seed[3];
  if (q.kind === 'expressions') return expressions(q.calls);
  room = q.console;
  return code(q.calls[0]);
}

function finish() {
  if (failed) return failure(outcome, undefined, printed);
  if (outcome === null) {
    return 'P' + failure({ message: 'the code awaits a promise that nothing will resolve' }, undefined, printed);
  }
  return 'O[' + outcome + ',' + stringify(printed) + ']';
}
return [run, finish];
})()
"""
