// The part of the sandbox that is JavaScript: it runs once per process, before the memory image is taken.
//
// A prelude evaluates to `[run, finish]`. Both take a text and return a text: `O` + JSON for a result, `E` + JSON
// `{message, memory, index, stdout}` for an error; `finish` puts a `P` in front of that while the program has no result
// and promise jobs may bring it one, and answers `T` + milliseconds when it waits for a timer that is due so long after
// the start of the program. `finish` of a text that is not empty calls that timer first, and then answers `J`: there may
// be promise jobs. No time passes meanwhile: the host moves the clock of the program. The request of `run` is JSON:
//
//     {"kind": "expressions", "calls": [{"s": source, "v": values, "t": texts, "p": it parsed before}], "seed": [4 x u32]}
//         -> O[result, ...]
//     {"kind": "code", "calls": [one], "seed": [4 x u32], "console": characters}  -> O, then `finish` -> O[result, stdout]
//     {"kind": "check", "source": text, "form": "expression" | "code"}  -> Onull | O"message"
//
// Why user text cannot break out of its wrapping. An expression T must parse as `(T)` and as `[T]`: up to its first
// unmatched bracket both read the same tokens, and that bracket would have to be `)` in one and `]` in the other. A body B
// must parse as the body of an arrow function in parentheses and as a method body in a class: if B closed its own brace
// early, the next token would have to be `,` or `)` for the first, and neither can start a class element. `throw 0` before
// the wrapping makes it only parse: nothing after it ever runs.
//
// User code may spoil the built-ins it shares with this file. It can then only spoil its own answer, which the host
// checks like any foreign text; the next evaluation starts from the image again.
//
// The globals of browsers and Node beyond the language are in the files beside this one. To compile these takes up to
// 10 ms, and each call would be 20 us slower if they lay in its image. So there are two preludes: in that of `wide` they
// are compiled, for calls whose request has one of the names in it; otherwise they are texts, compiled when a program
// reaches them all the same (as `globalThis["U" + "RL"]`).
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

const wellFormed = (value) => `${value}`.toWellFormed();
function utf8(whole) {
  const out = [];
  for (const c of whole) {
    const p = c.codePointAt(0);
    if (p < 0x80) out.push(p);
    else if (p < 0x800) out.push(p >> 6 | 0xc0, p & 0x3f | 0x80);
    else if (p < 0x10000) out.push(p >> 12 | 0xe0, p >> 6 & 0x3f | 0x80, p & 0x3f | 0x80);
    else out.push(p >> 18 | 0xf0, p >> 12 & 0x3f | 0x80, p >> 6 & 0x3f | 0x80, p & 0x3f | 0x80);
  }
  return out;
}
const define = Object.defineProperty, names = Object.keys;
function settle(name, value) {
  define(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
}
function offer(name, make) {
  define(globalThis, name, {
    configurable: true, enumerable: false, set(value) { settle(name, value); },
    get() {
      const made = (typeof make === 'string' ? script(RUN + make) : make)({ utf8, wellFormed, next });
      for (const one of names(made)) settle(one, made[one]);
      return made[name];
    },
  });
}
$OFFERS

// Timers in the order in which they are due, then in which they were set.
let timers = [], serial = 0, elapsed = 0, programs = false;
function arm(callback, delay, values, every) {
  if (typeof callback !== 'function') throw new TypeError('the callback is not a function');
  if (!programs) throw new TypeError('timers are for code, not for expressions');
  const wanted = Math.min(Math.max(Math.trunc(Number(delay)) || 0, every ? 1 : 0), 2147483647);
  const id = ++serial;
  insert({ id, due: elapsed + wanted, callback, values, every: every ? wanted : 0 });
  return id;
}
function insert(timer) {
  let low = 0, high = timers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timers[middle].due <= timer.due) low = middle + 1; else high = middle;
  }
  timers.splice(low, 0, timer);
}
function disarm(id) {
  const at = timers.findIndex((timer) => timer.id === id);
  if (at >= 0) timers.splice(at, 1);
  else if (fired !== null && fired.id === id) fired.every = 0;
}
let fired = null;
function fire() {
  fired = timers.shift();
  elapsed = fired.due;
  try {
    (0, fired.callback)(...fired.values);
    if (fired.every) insert({ ...fired, due: elapsed + fired.every });
  } catch (error) { failed = true; outcome = error; }
  fired = null;
  return failed ? failure(outcome, undefined, printed) : 'J';
}
const late = {
  setTimeout(callback, delay, ...values) { return arm(callback, delay, values, false); },
  setInterval(callback, delay, ...values) { return arm(callback, delay, values, true); },
  clearTimeout(id) { disarm(id); },
  clearInterval(id) { disarm(id); },
};
for (const name of names(late)) settle(name, late[name]);

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
  programs = true;
  return code(q.calls[0]);
}

function finish(due) {
  if (failed) return failure(outcome, undefined, printed);
  if (due !== '' && outcome === null) return fire();
  if (outcome === null) {
    if (timers.length) return 'T' + timers[0].due;
    return 'P' + failure({ message: 'the code awaits a promise that nothing will resolve' }, undefined, printed);
  }
  return 'O[' + outcome + ',' + stringify(printed) + ']';
}
return [run, finish];
})()
