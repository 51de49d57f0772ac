//# \b(DateTime|toDateTime|toFormat|toISO|toISODate)\b|\$now|\$today
class DateTime {
  constructor(time) { this.ts = time instanceof DateTime ? time.ts : +new Date(time ?? NaN); }
  static now() { return new DateTime(Date.now()); }
  static local(...at) { return at.length ? new DateTime(Date.UTC(at[0], (at[1] ?? 1) - 1, ...at.slice(2).filter(Number.isFinite))) : DateTime.now(); }
  static utc(...at) { return DateTime.local(...at); }
  static fromISO(text) { return new DateTime(text); }
  static fromJSDate(date) { return new DateTime(date); }
  static fromMillis(ms) { return new DateTime(ms); }
  static fromSeconds(s) { return new DateTime(s * 1000); }
  static fromFormat(text, form) { return new DateTime(dates.parse(text, form)); }
  static _span(amount, unit) { return typeof amount === 'object' ? Object.fromEntries(Object.entries(amount).map(([k, v]) => [k.replace(/s?$/, 's'), v])) : { [String(unit ?? 'milliseconds').replace(/s?$/, 's')]: amount }; }
  plus(amount, unit) { return new DateTime(dates.add(this.ts, DateTime._span(amount, unit))); }
  minus(amount, unit) { return this.plus(Object.fromEntries(Object.entries(DateTime._span(amount, unit)).map(([k, v]) => [k, -v]))); }
  startOf(unit) { return new DateTime(dates.startOf(this.ts, unit.replace(/s$/, ''))); }
  endOf(unit) { return new DateTime(dates.add(this.startOf(unit).ts, { [unit.replace(/s?$/, 's')]: 1 }) - 1); }
  diff(other, unit = 'milliseconds') {
    const [name] = [unit].flat(), size = { weeks: 6048e5, days: 864e5, hours: 36e5, minutes: 6e4, seconds: 1e3, milliseconds: 1 };
    const n = size[name.replace(/s?$/, 's')] ? (this.ts - new DateTime(other).ts) / size[name.replace(/s?$/, 's')] : dates.difference(new DateTime(other).ts, this.ts, name.replace(/s?$/, 's'));
    return { [name]: n, as: (to) => this.diff(other, to)[to], toObject: () => ({ [name]: n }), valueOf: () => n };
  }
  diffTo(other, unit = 'days') { return new DateTime(other).diff(this, unit)[[unit].flat()[0]]; }
  diffToNow(unit = 'days') { return DateTime.now().diff(this, unit)[[unit].flat()[0]]; }
  hasSame(other, unit) { return +this.startOf(unit) === +new DateTime(other).startOf(unit); }
  set(at) { const now = new Date(this.ts); return new DateTime(Date.UTC(at.year ?? now.getUTCFullYear(), (at.month ?? now.getUTCMonth() + 1) - 1, at.day ?? now.getUTCDate(), at.hour ?? now.getUTCHours(), at.minute ?? now.getUTCMinutes(), at.second ?? now.getUTCSeconds(), at.millisecond ?? now.getUTCMilliseconds())); }
  toFormat(form) { return dates.format(this.ts, form.replace(/L/g, 'M').replace(/c/g, 'E').replace(/ZZ/g, 'XXX').replace(/\bt\b/g, 'HH:mm').replace(/\bD\b/g, 'dd.MM.yyyy')); }
  format(form) { return this.toFormat(form); }
  toISO() { return new Date(this.ts).toISOString(); }
  toISODate() { return this.toISO().slice(0, 10); }
  toISOTime() { return this.toISO().slice(11); }
  toJSON() { return this.toISO(); }
  toString() { return this.toISO(); }
  toISOString() { return this.toISO(); }
  toJSDate() { return new Date(this.ts); }
  toDate() { return new Date(this.ts); }
  toMillis() { return this.ts; }
  toSeconds() { return this.ts / 1000; }
  toUnixInteger() { return Math.floor(this.ts / 1000); }
  toLocaleString() { return this.toFormat('dd.MM.yyyy, HH:mm:ss'); }
  valueOf() { return this.ts; }
  setZone() { return this; }
  setLocale() { return this; }
  toUTC() { return this; }
  toLocal() { return this; }
  toDateTime() { return this; }
  get isValid() { return Number.isFinite(this.ts); }
  get year() { return new Date(this.ts).getUTCFullYear(); }
  get month() { return new Date(this.ts).getUTCMonth() + 1; }
  get day() { return new Date(this.ts).getUTCDate(); }
  get hour() { return new Date(this.ts).getUTCHours(); }
  get minute() { return new Date(this.ts).getUTCMinutes(); }
  get second() { return new Date(this.ts).getUTCSeconds(); }
  get weekday() { return new Date(this.ts).getUTCDay() || 7; }
  get weekNumber() { return dates.week(this.ts).week; }
  get monthLong() { return this.toFormat('MMMM'); }
  get weekdayLong() { return this.toFormat('EEEE'); }
}
const $now = DateTime.now(), $today = $now.startOf('day');
for (const of of [String, Number, Date]) Object.defineProperty(of.prototype, 'toDateTime', { value() { return new DateTime(this.valueOf()); }, configurable: true });
for (const name of ['plus', 'minus', 'format', 'toFormat', 'toISO', 'startOf', 'diffTo', 'diffToNow']) Object.defineProperty(Date.prototype, name, { value(...all) { return new DateTime(this)[name](...all); }, configurable: true });
//# ^(?![\s\S]*= view\()[\s\S]*(?<!Math)\.(isEmpty|isNotEmpty|first|last|unique|removeDuplicates|pluck|compact|sum|average|chunk|toJsonString|parseJson|toNumber|toInt|toFloat|toBoolean|toTitleCase|toSentenceCase|urlEncode|urlDecode|removeTags|removeMarkdown|extractEmail|extractUrl|extractUrls|extractDomain|isEmail|isUrl|base64Encode|base64Decode|hasField|quote|merge|max|min|isEven|isOdd|round)\(
{
  const on = (type, all) => { for (const [name, value] of Object.entries(all)) if (!(name in type.prototype)) Object.defineProperty(type.prototype, name, { value, configurable: true }); };
  on(String, {
    isEmpty() { return this.length === 0; }, isNotEmpty() { return this.length > 0; }, toJsonString() { return JSON.stringify(String(this)); }, parseJson() { return JSON.parse(this); },
    toNumber() { return Number(this); }, toInt() { return parseInt(this); }, toFloat() { return parseFloat(this); }, toBoolean() { return !['', '0', 'false', 'no'].includes(this.toLowerCase()); },
    toTitleCase() { return this.toLowerCase().replace(/(^|\s)\S/g, (c) => c.toUpperCase()); }, toSentenceCase() { return this.toLowerCase().replace(/(^\s*|[.!?]\s+)[a-z]/g, (c) => c.toUpperCase()); },
    urlEncode() { return encodeURIComponent(this); }, urlDecode() { return decodeURIComponent(this); }, removeTags() { return this.replace(/<[^>]*>/g, ''); }, removeMarkdown() { return this.replace(/[*_`#>~]+|!?\[([^\]]*)\]\([^)]*\)/g, '$1'); },
    extractEmail() { return this.match(/[\w.+-]+@[\w-]+\.[\w.-]+/)?.[0]; }, extractUrl() { return this.match(/https?:\/\/[^\s"'<>)]+/)?.[0]; }, extractUrls() { return this.match(/https?:\/\/[^\s"'<>)]+/g) ?? []; },
    extractDomain() { return this.match(/(?:https?:\/\/|@)?([\w-]+(?:\.[\w-]+)+)/)?.[1]; }, isEmail() { return /^[\w.+-]+@[\w-]+\.[\w.-]+$/.test(this); }, isUrl() { return /^https?:\/\/\S+$/.test(this); },
    base64Encode() { return btoa(String.fromCharCode(...new TextEncoder().encode(this))); }, base64Decode() { return new TextDecoder().decode(Uint8Array.from(atob(this), (c) => c.charCodeAt(0))); }, quote() { return `"${ this }"`; },
  });
  const key = (one) => JSON.stringify(one);
  on(Array, {
    isEmpty() { return this.length === 0; }, isNotEmpty() { return this.length > 0; }, first() { return this[0]; }, last() { return this.at(-1); }, toJsonString() { return JSON.stringify(this); },
    unique() { return [...new Map(this.map((one) => [key(one), one])).values()]; }, removeDuplicates() { return this.unique(); }, pluck(...names) { return names.length === 1 ? this.map((one) => one?.[names[0]]) : this.map((one) => Object.fromEntries(names.map((n) => [n, one?.[n]]))); },
    compact() { return this.filter((one) => one !== null && one !== undefined && one !== ''); }, sum() { return this.reduce((a, b) => a + Number(b), 0); }, average() { return this.length ? this.sum() / this.length : 0; },
    max() { return Math.max(...this); }, min() { return Math.min(...this); }, merge(other) { return this.map((one, i) => ({ ...one, ...other[i] })); }, chunk(n) { return Array.from({ length: Math.ceil(this.length / n) }, (_, i) => this.slice(i * n, i * n + n)); },
  });
  on(Number, { isEven() { return this % 2 === 0; }, isOdd() { return Math.abs(this % 2) === 1; }, round(n = 0) { return Math.round(this * 10 ** n) / 10 ** n; }, isEmpty() { return false; }, toNumber() { return +this; }, toInt() { return Math.trunc(this); }, toBoolean() { return +this !== 0; } });
  on(Object, { isEmpty() { return Object.keys(this).length === 0; }, isNotEmpty() { return Object.keys(this).length > 0; }, hasField(name) { return name in this; }, toJsonString() { return JSON.stringify(this); } });
}
//# \$(if|ifEmpty|min|max|not)\(
const $if = (test, yes, no) => (test ? yes : no), $min = Math.min, $max = Math.max, $not = (one) => !one;
const $ifEmpty = (one, other) => (one === null || one === undefined || one === '' || (typeof one === 'object' && Object.keys(one).length === 0) ? other : one);
//# \b(sortedBy|groupedBy|firstsBy|at)\(
const at = (one, path) => path.reduce((inner, name) => inner?.[name], one), key = (one, paths) => JSON.stringify(paths.length ? paths.map((path) => at(one, path)) : one);
const sortedBy = (items, by) => [...items].sort((a, b) => { for (const [path, way] of by) { const x = at(a, path), y = at(b, path); if (x !== y) return x > y ? way : -way; } return 0; });
const firstsBy = (items, paths) => [...new Map([...items].reverse().map((one) => [key(one, paths), one])).values()].reverse();
const groupedBy = (items, paths) => (paths.length ? Object.values(Object.groupBy(items, (one) => key(one, paths))) : [items]);
//# \bsummed\(
const summed = { sum: (v) => v.reduce((a, b) => a + Number(b ?? 0), 0), count: (v) => v.filter((one) => one != null).length, countUnique: (v) => new Set(v).size, average: (v) => v.reduce((a, b) => a + Number(b ?? 0), 0) / v.length, min: (v) => v.reduce((a, b) => (a < b ? a : b)), max: (v) => v.reduce((a, b) => (a > b ? a : b)), append: (v) => v, concatenate: (v) => v.join(', ') };
//# \bmerged\(
const merged = {
  position: (lists, all) => Array.from({ length: Math[all ? 'max' : 'min'](...lists.map((list) => list.length)) }, (_, i) => Object.assign({}, ...lists.map((list) => list[i]))),
  all: (lists) => lists.reduce((made, list) => made.flatMap((one) => list.map((other) => ({ ...one, ...other })))),
  fields: ([left = [], right = []], of, to, join) => {
    const found = (one, list, mine, theirs) => list.filter((other) => mine(one) === theirs(other));
    const alone = (list, others, mine, theirs) => list.filter((one) => found(one, others, mine, theirs).length === 0);
    const joined = (list, others, mine, theirs) => list.map((one) => ({ ...one, ...found(one, others, mine, theirs)[0] }));
    if (join === 'keepNonMatches') return [...alone(left, right, of, to), ...alone(right, left, to, of)];
    if (join === 'enrichInput1') return joined(left, right, of, to);
    if (join === 'enrichInput2') return joined(right, left, to, of);
    if (join === 'keepEverything') return [...joined(left, right, of, to), ...alone(right, left, to, of)];
    return left.flatMap((one) => found(one, right, of, to).map((other) => ({ ...one, ...other })));
  },
};
//# \bview\(
const wrapped = (list) => list.map((json) => ({ json, binary: {} }));
const view = (all) => ({ all: () => all, first: () => all[0], last: () => all.at(-1), item: all[0], itemMatching: (i) => all[i], isExecuted: all.length > 0, params: {} });
const unwrapped = (made) => (Array.isArray(made) ? made : made == null ? [] : [made]).map((one) => one?.json ?? one);
//# \$lists\b
const $items = (name) => wrapped($lists[name] ?? []), $ = (name) => view($items(name));
const $node = new Proxy({}, { get: (_, name) => $items(name)[0] ?? { json: {} } });
//# \bhashed\(
const hashed = async (kind, text) => [...new Uint8Array(await crypto.subtle.digest(kind, new TextEncoder().encode(String(text))))].map((one) => one.toString(16).padStart(2, '0')).join('');
//# \bmailOf\(|\bBuffer\b
const bytesOf = (text) => { const plain = text.replace(/-/g, '+').replace(/_/g, '/').replace(/[^A-Za-z0-9+/]/g, ''); return Uint8Array.from(atob(plain.padEnd(Math.ceil(plain.length / 4) * 4, '=')), (c) => c.charCodeAt(0)); };
//# \bBuffer\b
const Buffer = {
  from(value, coding = 'utf8') {
    const bytes = typeof value !== 'string' ? Uint8Array.from(value) : coding.startsWith('base64') ? bytesOf(value) : coding === 'hex' ? Uint8Array.from(value.match(/../g) ?? [], (one) => parseInt(one, 16)) : new TextEncoder().encode(value);
    const hex = () => [...bytes].map((one) => one.toString(16).padStart(2, '0')).join(''), chars = () => bytes.reduce((text, one) => text + String.fromCharCode(one), '');
    return Object.assign(bytes, { toString: (to = 'utf8') => (to.startsWith('base64') ? btoa(chars()) : to === 'hex' ? hex() : new TextDecoder().decode(bytes)) });
  },
  isBuffer: (one) => one instanceof Uint8Array, byteLength: (text) => new TextEncoder().encode(text).length,
};
//# \bmailOf\(
const mailOf = (mail) => {
  const named = Object.fromEntries((mail.payload?.headers ?? []).map((one) => [one.name.toLowerCase(), one.value]));
  const parts = (one) => [one, ...(one?.parts ?? []).flatMap(parts)];
  const body = (type) => parts(mail.payload).filter((one) => one?.mimeType === type && one.body?.data).map((one) => new TextDecoder().decode(bytesOf(one.body.data))).join('\n');
  const people = (text) => (text ? { text, value: text.split(/,(?=[^"]*(?:"[^"]*"[^"]*)*$)/).map((one) => { const found = one.match(/^\s*"?(.*?)"?\s*<([^>]+)>\s*$/); return found ? { name: found[1], address: found[2] } : { name: '', address: one.trim() }; }) } : undefined);
  const time = Number(mail.internalDate), html = body('text/html');
  return {
    ...mail, headers: named, Subject: named.subject, From: named.from, To: named.to, CC: named.cc, subject: named.subject ?? '', from: people(named.from), to: people(named.to), cc: people(named.cc), replyTo: people(named['reply-to']), messageId: named['message-id'],
    date: Number.isFinite(time) && time > 0 ? new Date(time).toISOString() : named.date, text: body('text/plain') || html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim(), html, labels: (mail.labelIds ?? []).map((id) => ({ id, name: id })),
  };
};
//# \browOf\(
const rowOf = ([names = [], ...rows], item, keys, sheet, adds) => {
  const same = (row, i) => keys.every((key) => (key === 'row_number' ? i + 2 === Number(item[key]) : String(row[names.indexOf(key)] ?? '') === String(item[key] ?? '')));
  const at = rows.findIndex(same), to = at >= 0 ? at : adds ? rows.length : -1, all = names.length ? names : Object.keys(item);
  return { range: `${ sheet }!A${ to + 2 }`, rows: to < 0 ? [] : [all.map((name) => item[name] ?? rows[at]?.[names.indexOf(name)] ?? '')] };
};
