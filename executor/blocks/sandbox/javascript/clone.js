// structuredClone, as in the HTML standard, for what exists here. An ArrayBuffer in `transfer` is moved.
(function () {
const refuse = (what) => { throw new DOMException(what + ' could not be cloned.', 'DataCloneError'); };
const kindOf = (value) => Object.prototype.toString.call(value).slice(8, -1);
const ERRORS = { __proto__: null, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

function structuredClone(value, options) {
  if (arguments.length === 0) throw new TypeError('structuredClone needs a value');
  const seen = new Map();
  for (const one of options?.transfer ?? []) {
    if (!(one instanceof ArrayBuffer) || seen.has(one)) refuse(kindOf(one));
    seen.set(one, undefined);
  }
  for (const one of seen.keys()) seen.set(one, one.transfer());
  return copy(value, seen);
}

function copy(value, seen) {
  if (typeof value === 'symbol') refuse(String(value));
  if (typeof value === 'function') refuse(value.name ? 'function ' + value.name : 'a function');
  if (typeof value !== 'object' || value === null) return value;
  if (seen.has(value)) return seen.get(value);
  const keep = (made) => { seen.set(value, made); return made; };
  if (Array.isArray(value)) {
    const made = keep(new Array(value.length));
    for (const name of Object.keys(value)) made[name] = copy(value[name], seen);
    return made;
  }
  if (value instanceof Date) return keep(new Date(Date.prototype.getTime.call(value)));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof Boolean || value instanceof Number || value instanceof String || value instanceof BigInt) return keep(Object(value.valueOf()));
  if (value instanceof Map) {
    const made = keep(new Map());
    for (const [name, item] of [...value]) made.set(copy(name, seen), copy(item, seen));
    return made;
  }
  if (value instanceof Set) {
    const made = keep(new Set());
    for (const item of [...value]) made.add(copy(item, seen));
    return made;
  }
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (ArrayBuffer.isView(value)) {
    const buffer = copy(value.buffer, seen), kind = globalThis[kindOf(value)];
    return keep(new kind(buffer, value.byteOffset, value instanceof DataView ? value.byteLength : value.length));
  }
  if (value instanceof Error) {
    const made = keep(new (ERRORS[value.name] ?? Error)(value.message));
    if (Object.hasOwn(value, 'cause')) Object.defineProperty(made, 'cause', { value: copy(value.cause, seen), writable: true, configurable: true });
    return made;
  }
  for (const kind of [Symbol, Promise, WeakMap, WeakSet, WeakRef]) if (value instanceof kind) refuse('#<' + kind.name + '>');
  const made = keep({});
  for (const name of Object.keys(value)) {
    Object.defineProperty(made, name, { value: copy(value[name], seen), writable: true, enumerable: true, configurable: true });
  }
  return made;
}
return { structuredClone };
})
