// URL and URLSearchParams, as in the URL standard (url.spec.whatwg.org). The parser is its state machine, with its
// names. Hosts in other scripts are written as punycode after lower case and NFKC, without the tables of UTS 46.
(function ({ utf8, wellFormed }) {
const PORTS = { __proto__: null, http: 80, https: 443, ws: 80, wss: 443, ftp: 21, file: null };
const OVER_LIMIT = 64 * 1024;

const among = (characters) => { const set = new Set(characters); return (c) => c < '!' || c > '~' || set.has(c); };
const IN_CONTROL = (c) => c < ' ' || c > '~';
const IN_FRAGMENT = among('"<>`'), IN_QUERY = among('"#<>'), IN_SPECIAL_QUERY = among('"#<>\''), IN_PATH = among('"#<>?^`{}');
const IN_USER = among('"#<>?`{}/:;=@[\\]^|'), IN_FORM = (c) => !/[A-Za-z0-9*\-._]/.test(c);
const FORBIDDEN_HOST = /[\0\t\n\r #/:<>?@[\\\]^|]/, FORBIDDEN_DOMAIN = /[\0-\x20#%/:<>?@[\\\]^|\x7f]/;

const hex = (byte) => '%' + (byte < 16 ? '0' : '') + byte.toString(16).toUpperCase();
function encode(text, inSet) {
  let out = '';
  for (const c of text) {
    if (!inSet(c)) out += c;
    else for (const byte of utf8(c)) out += hex(byte);
  }
  return out;
}
function decode(text) {
  if (!text.includes('%')) return text;
  const bytes = [];
  for (const c of text.split(/(%[0-9a-fA-F]{2})/)) {
    if (/^%[0-9a-fA-F]{2}$/.test(c)) bytes.push(parseInt(c.slice(1), 16));
    else bytes.push(...utf8(c));
  }
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array(bytes));
}

// hosts

function punycode(label) {
  const points = Array.from(label, (c) => c.codePointAt(0));
  let out = points.filter((p) => p < 128).map((p) => String.fromCharCode(p)).join('');
  const basic = out.length;
  let handled = basic, n = 128, delta = 0, bias = 72;
  if (basic) out += '-';
  while (handled < points.length) {
    const least = Math.min(...points.filter((p) => p >= n));
    delta += (least - n) * (handled + 1);
    n = least;
    for (const p of points) {
      if (p < n) delta++;
      if (p !== n) continue;
      let q = delta;
      for (let k = 36; ; k += 36) {
        const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (q < t) break;
        const digit = t + (q - t) % (36 - t);
        out += String.fromCharCode(digit + (digit < 26 ? 97 : 22));
        q = Math.floor((q - t) / (36 - t));
      }
      out += String.fromCharCode(q + (q < 26 ? 97 : 22));
      delta = handled === basic ? Math.floor(delta / 700) : delta >> 1;
      delta += Math.floor(delta / (handled + 1));
      let k = 0;
      for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
      bias = k + Math.floor(36 * delta / (delta + 38));
      delta = 0;
      handled++;
    }
    delta++;
    n++;
  }
  return 'xn--' + out;
}
function toAscii(domain) {
  const lower = domain.replace(/\u00ad|\u200b|\u2060|\ufeff/g, '').normalize('NFKC').toLowerCase().normalize('NFC').replace(/[\u3002\uff0e\uff61]/g, '.');
  if (/(^|\.)xn--(?![a-z0-9-]*[a-z0-9](\.|$))/.test(lower)) return null;
  return lower.split('.').map((label) => /[^\0-\x7f]/.test(label) ? punycode(label) : label).join('.');
}
function number4(text) {
  if (text === '') return NaN;
  let radix = 10;
  if (/^0[xX]/.test(text)) { radix = 16; text = text.slice(2); } else if (/^0./.test(text)) { radix = 8; text = text.slice(1); }
  if (text === '') return 0;
  const digits = radix === 10 ? /^[0-9]+$/ : radix === 16 ? /^[0-9a-fA-F]+$/ : /^[0-7]+$/;
  return digits.test(text) ? parseInt(text, radix) : NaN;
}
function host4(domain) {
  const parts = domain.split('.');
  if (parts.length > 1 && parts[parts.length - 1] === '') parts.pop();
  const last = parts[parts.length - 1];
  if (!/^[0-9]+$/.test(last) && Number.isNaN(number4(last))) return undefined;
  const numbers = parts.map(number4);
  if (parts.length > 4 || numbers.some(Number.isNaN)) return null;
  const tail = numbers.pop();
  if (numbers.some((n) => n > 255) || tail >= 256 ** (4 - numbers.length)) return null;
  let value = tail;
  numbers.forEach((n, i) => { value += n * 256 ** (3 - i); });
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}
function host6(text) {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const pieces = (half, isLast) => {
    const out = [];
    if (half === '') return out;
    const parts = half.split(':');
    for (let i = 0; i < parts.length; i++) {
      if (isLast && i === parts.length - 1 && parts[i].includes('.')) {
        const four = parts[i].split('.');
        if (four.length !== 4 || !four.every((n) => /^(0|[1-9][0-9]{0,2})$/.test(n) && n < 256)) return null;
        out.push(four[0] * 256 + +four[1], four[2] * 256 + +four[3]);
      } else if (/^[0-9a-fA-F]{1,4}$/.test(parts[i])) out.push(parseInt(parts[i], 16));
      else return null;
    }
    return out;
  };
  const head = pieces(halves[0], halves.length === 1), tail = halves.length === 2 ? pieces(halves[1], true) : [];
  if (head === null || tail === null) return null;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const all = [...head, ...new Array(missing).fill(0), ...tail];
  let best = 1, at = -1;
  for (let i = 0; i < 8; i++) {
    let length = 0;
    while (i + length < 8 && all[i + length] === 0) length++;
    if (length > best) { best = length; at = i; }
  }
  const show = (list) => list.map((n) => n.toString(16)).join(':');
  return '[' + (at < 0 ? show(all) : show(all.slice(0, at)) + '::' + show(all.slice(at + best))) + ']';
}
function parseHost(text, special) {
  if (text[0] === '[') return text.endsWith(']') ? host6(text.slice(1, -1)) : null;
  if (!special) return FORBIDDEN_HOST.test(text) ? null : encode(text, IN_CONTROL);
  const domain = toAscii(decode(text));
  if (domain === null || domain === '' || FORBIDDEN_DOMAIN.test(domain)) return null;
  const four = host4(domain);
  return four === undefined ? domain : four;
}

// the parser

const isSpecial = (url) => url.scheme in PORTS;
const isLetterAndBar = (text) => /^[A-Za-z][:|]$/.test(text);
const startsWithDrive = (text) => /^[A-Za-z][:|]($|[/\\?#])/.test(text);
function shorten(url) {
  if (url.scheme === 'file' && url.path.length === 1 && /^[A-Za-z]:$/.test(url.path[0])) return;
  url.path.pop();
}
const isSingleDot = (text) => /^(\.|%2e)$/i.test(text), isDoubleDot = (text) => /^(\.|%2e){2}$/i.test(text);
const credentials = (url) => url.username !== '' || url.password !== '';
const blank = () => ({ scheme: '', username: '', password: '', host: null, port: null, path: [], query: null, fragment: null });

// Returns the record; null for a failure. With `override`, changes `url` and stops behind that part.
function parse(input, base, url, override) {
  if (!url) { url = blank(); input = input.replace(/^[\0- ]+|[\0- ]+$/g, ''); }
  input = input.replace(/[\t\n\r]/g, '');
  let state = override || 'scheme start', buffer = '', at = false, brackets = false, password = false;
  const end = input.length;
  for (let i = 0; i <= end; i++) {
    const c = i < end ? input[i] : '', rest = () => input.slice(i + 1);
    switch (state) {
      case 'scheme start':
        if (/^[A-Za-z]$/.test(c)) { buffer = c.toLowerCase(); state = 'scheme'; }
        else if (!override) { state = 'no scheme'; i--; }
        else return null;
        break;
      case 'scheme':
        if (/^[A-Za-z0-9+\-.]$/.test(c)) { buffer += c.toLowerCase(); break; }
        if (c === ':') {
          if (override) {
            if (isSpecial(url) !== buffer in PORTS) return url;
            if ((credentials(url) || url.port !== null) && buffer === 'file') return url;
            if (url.scheme === 'file' && url.host === '') return url;
          }
          url.scheme = buffer;
          if (override) { if (url.port === PORTS[url.scheme]) url.port = null; return url; }
          buffer = '';
          if (url.scheme === 'file') state = 'file';
          else if (isSpecial(url)) state = base && base.scheme === url.scheme ? 'special relative or authority' : 'special authority slashes';
          else if (rest()[0] === '/') { state = 'path or authority'; i++; }
          else { url.path = ''; state = 'opaque path'; }
        } else if (!override) { buffer = ''; state = 'no scheme'; i = -1; }
        else return null;
        break;
      case 'no scheme':
        if (!base || (typeof base.path === 'string' && c !== '#')) return null;
        if (typeof base.path === 'string') {
          Object.assign(url, { scheme: base.scheme, path: base.path, query: base.query, fragment: '' });
          state = 'fragment';
        } else { state = base.scheme === 'file' ? 'file' : 'relative'; i--; }
        break;
      case 'special relative or authority':
        if (c === '/' && rest()[0] === '/') { state = 'special authority ignore slashes'; i++; }
        else { state = 'relative'; i--; }
        break;
      case 'path or authority':
        if (c === '/') state = 'authority'; else { state = 'path'; i--; }
        break;
      case 'relative':
        url.scheme = base.scheme;
        if (c === '/') state = 'relative slash';
        else if (isSpecial(url) && c === '\\') state = 'relative slash';
        else {
          Object.assign(url, { username: base.username, password: base.password, host: base.host, port: base.port, path: [...base.path], query: base.query });
          if (c === '?') { url.query = ''; state = 'query'; }
          else if (c === '#') { url.fragment = ''; state = 'fragment'; }
          else if (c !== '') { url.query = null; shorten(url); state = 'path'; i--; }
        }
        break;
      case 'relative slash':
        if (isSpecial(url) && (c === '/' || c === '\\')) state = 'special authority ignore slashes';
        else if (c === '/') state = 'authority';
        else {
          Object.assign(url, { username: base.username, password: base.password, host: base.host, port: base.port });
          state = 'path'; i--;
        }
        break;
      case 'special authority slashes':
        state = 'special authority ignore slashes';
        if (c === '/' && rest()[0] === '/') i++; else i--;
        break;
      case 'special authority ignore slashes':
        if (c !== '/' && c !== '\\') { state = 'authority'; i--; }
        break;
      case 'authority':
        if (c === '@') {
          if (at) buffer = '%40' + buffer;
          at = true;
          for (const one of buffer) {
            if (one === ':' && !password) { password = true; continue; }
            if (password) url.password += encode(one, IN_USER); else url.username += encode(one, IN_USER);
          }
          buffer = '';
        } else if (c === '' || c === '/' || c === '?' || c === '#' || (isSpecial(url) && c === '\\')) {
          if (at && buffer === '') return null;
          i -= buffer.length + 1;
          buffer = '';
          state = 'host';
        } else buffer += c;
        break;
      case 'host':
      case 'hostname':
        if (override && url.scheme === 'file') { i--; state = 'file host'; }
        else if (c === ':' && !brackets) {
          if (buffer === '' || override === 'hostname') return null;
          if ((url.host = parseHost(buffer, isSpecial(url))) === null) return null;
          buffer = ''; state = 'port';
        } else if (c === '' || c === '/' || c === '?' || c === '#' || (isSpecial(url) && c === '\\')) {
          i--;
          if (isSpecial(url) && buffer === '') return null;
          if (override && buffer === '' && (credentials(url) || url.port !== null)) return null;
          const host = buffer === '' ? '' : parseHost(buffer, isSpecial(url));
          if (host === null) return null;
          url.host = host; buffer = ''; state = 'path start';
          if (override) return url;
        } else {
          if (c === '[') brackets = true;
          if (c === ']') brackets = false;
          buffer += c;
        }
        break;
      case 'port':
        if (/^[0-9]$/.test(c)) buffer += c;
        else if (c === '' || c === '/' || c === '?' || c === '#' || (isSpecial(url) && c === '\\') || override) {
          if (buffer !== '') {
            const port = Number(buffer);
            if (port > 65535) return null;
            url.port = port === PORTS[url.scheme] ? null : port;
            buffer = '';
            if (override) return url;
          }
          if (override) return null;
          state = 'path start'; i--;
        } else return null;
        break;
      case 'file':
        url.scheme = 'file';
        url.host = '';
        if (c === '/' || c === '\\') state = 'file slash';
        else if (base && base.scheme === 'file') {
          Object.assign(url, { host: base.host, path: [...base.path], query: base.query });
          if (c === '?') { url.query = ''; state = 'query'; }
          else if (c === '#') { url.fragment = ''; state = 'fragment'; }
          else if (c !== '') {
            url.query = null;
            if (startsWithDrive(input.slice(i))) url.path = []; else shorten(url);
            state = 'path'; i--;
          }
        } else { state = 'path'; i--; }
        break;
      case 'file slash':
        if (c === '/' || c === '\\') { state = 'file host'; break; }
        if (base && base.scheme === 'file') {
          url.host = base.host;
          if (!startsWithDrive(input.slice(i)) && /^[A-Za-z]:$/.test(base.path[0])) url.path.push(base.path[0]);
        }
        state = 'path'; i--;
        break;
      case 'file host':
        if (c === '' || c === '/' || c === '\\' || c === '?' || c === '#') {
          i--;
          if (!override && isLetterAndBar(buffer)) state = 'path';
          else if (buffer === '') { url.host = ''; if (override) return url; state = 'path start'; }
          else {
            let host = parseHost(buffer, isSpecial(url));
            if (host === null) return null;
            if (host === 'localhost') host = '';
            url.host = host;
            if (override) return url;
            buffer = ''; state = 'path start';
          }
        } else buffer += c;
        break;
      case 'path start':
        if (isSpecial(url)) { state = 'path'; if (c !== '/' && c !== '\\') i--; }
        else if (!override && c === '?') { url.query = ''; state = 'query'; }
        else if (!override && c === '#') { url.fragment = ''; state = 'fragment'; }
        else if (c !== '') { state = 'path'; if (c !== '/') i--; }
        else if (override && url.host === null) url.path.push('');
        break;
      case 'path': {
        const slash = c === '/' || (isSpecial(url) && c === '\\');
        if (c === '' || slash || (!override && (c === '?' || c === '#'))) {
          if (isDoubleDot(buffer)) { shorten(url); if (!slash) url.path.push(''); }
          else if (isSingleDot(buffer)) { if (!slash) url.path.push(''); }
          else {
            if (url.scheme === 'file' && url.path.length === 0 && isLetterAndBar(buffer)) buffer = buffer[0] + ':';
            url.path.push(buffer);
          }
          buffer = '';
          if (c === '?') { url.query = ''; state = 'query'; }
          if (c === '#') { url.fragment = ''; state = 'fragment'; }
        } else {
          const point = input.codePointAt(i);
          buffer += encode(String.fromCodePoint(point), IN_PATH);
          if (point > 0xffff) i++;
        }
        break;
      }
      case 'opaque path': {
        const stop = input.slice(i).search(/[?#]/), text = stop < 0 ? input.slice(i) : input.slice(i, i + stop);
        url.path = encode(text, IN_CONTROL);
        if (url.path.endsWith(' ') && stop >= 0) url.path = url.path.slice(0, -1) + '%20';
        i += text.length;
        if (input[i] === '?') { url.query = ''; state = 'query'; }
        if (input[i] === '#') { url.fragment = ''; state = 'fragment'; }
        break;
      }
      case 'query': {
        const stop = override ? -1 : input.indexOf('#', i), text = stop < 0 ? input.slice(i) : input.slice(i, stop);
        url.query += encode(text, isSpecial(url) ? IN_SPECIAL_QUERY : IN_QUERY);
        i += text.length;
        if (stop >= 0) { url.fragment = ''; state = 'fragment'; }
        break;
      }
      case 'fragment':
        url.fragment += encode(input.slice(i), IN_FRAGMENT);
        i = end;
    }
  }
  return url;
}
function pathOf(url) { return typeof url.path === 'string' ? url.path : url.path.map((part) => '/' + part).join(''); }
function serialize(url) {
  let out = url.scheme + ':';
  if (url.host !== null) {
    out += '//';
    if (credentials(url)) out += url.username + (url.password === '' ? '' : ':' + url.password) + '@';
    out += url.host + (url.port === null ? '' : ':' + url.port);
  } else if (typeof url.path !== 'string' && url.path.length > 1 && url.path[0] === '') out += '/.';
  return out + pathOf(url) + (url.query === null ? '' : '?' + url.query) + (url.fragment === null ? '' : '#' + url.fragment);
}

// the classes

function parseForm(text) {
  const out = [];
  for (const piece of text.split('&')) {
    if (piece === '') continue;
    const cut = piece.indexOf('='), plain = (s) => decode(s.replaceAll('+', ' '));
    out.push(cut < 0 ? [plain(piece), ''] : [plain(piece.slice(0, cut)), plain(piece.slice(cut + 1))]);
  }
  return out;
}
const formOf = (list) => list.map((pair) => pair.map((text) => encode(text, IN_FORM).replaceAll('%20', '+')).join('=')).join('&');

class URLSearchParams {
  #list = [];
  #changed = () => {};
  constructor(init = '') {
    if (init !== null && (typeof init === 'object' || typeof init === 'function')) {
      if (init[Symbol.iterator] != null) {
        for (const pair of init) {
          const two = [...pair];
          if (two.length !== 2) throw new TypeError('each pair must be a name and a value');
          this.#list.push([wellFormed(two[0]), wellFormed(two[1])]);
        }
      } else for (const name of Object.keys(init)) this.#list.push([wellFormed(name), wellFormed(init[name])]);
    } else this.#list = parseForm(wellFormed(init).replace(/^\?/, ''));
  }
  static {
    bind = (params, list, changed) => { params.#list = list; if (changed) params.#changed = changed; };
  }
  get size() { return this.#list.length; }
  append(name, value) { this.#list.push([wellFormed(name), wellFormed(value)]); this.#changed(); }
  delete(name, value) {
    const wanted = wellFormed(name), only = value === undefined ? undefined : wellFormed(value);
    this.#list = this.#list.filter((pair) => !(pair[0] === wanted && (only === undefined || pair[1] === only)));
    this.#changed();
  }
  get(name) { const wanted = wellFormed(name), found = this.#list.find((pair) => pair[0] === wanted); return found ? found[1] : null; }
  getAll(name) { const wanted = wellFormed(name); return this.#list.filter((pair) => pair[0] === wanted).map((pair) => pair[1]); }
  has(name, value) {
    const wanted = wellFormed(name), only = value === undefined ? undefined : wellFormed(value);
    return this.#list.some((pair) => pair[0] === wanted && (only === undefined || pair[1] === only));
  }
  set(name, value) {
    const wanted = wellFormed(name), text = wellFormed(value), first = this.#list.findIndex((pair) => pair[0] === wanted);
    if (first < 0) this.#list.push([wanted, text]);
    else {
      this.#list[first][1] = text;
      this.#list = this.#list.filter((pair, i) => i <= first || pair[0] !== wanted);
    }
    this.#changed();
  }
  sort() { this.#list.sort((x, y) => (x[0] < y[0] ? -1 : x[0] > y[0] ? 1 : 0)); this.#changed(); }
  forEach(callback, self) { for (const [name, value] of this) callback.call(self, value, name, this); }
  *entries() { for (let i = 0; i < this.#list.length; i++) yield [...this.#list[i]]; }
  *keys() { for (let i = 0; i < this.#list.length; i++) yield this.#list[i][0]; }
  *values() { for (let i = 0; i < this.#list.length; i++) yield this.#list[i][1]; }
  toString() { return formOf(this.#list); }
}
var bind;
Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, { value: URLSearchParams.prototype.entries, writable: true, configurable: true });
Object.defineProperty(URLSearchParams.prototype, Symbol.toStringTag, { value: 'URLSearchParams', configurable: true });

class URL {
  #url;
  #params;
  constructor(url, base) {
    const text = wellFormed(url);
    let from;
    if (base !== undefined) {
      from = parse(wellFormed(base));
      if (from === null) throw new TypeError('Invalid base URL');
    }
    if (text.length > OVER_LIMIT) throw new TypeError('Invalid URL: it is too long');
    this.#url = parse(text, from);
    if (this.#url === null) throw new TypeError('Invalid URL');
    this.#params = new URLSearchParams();
    this.#reset();
  }
  static parse(url, base) { try { return new URL(url, base); } catch (_) { return null; } }
  static canParse(url, base) { return URL.parse(url, base) !== null; }
  #reset() {
    bind(this.#params, this.#url.query === null ? [] : parseForm(this.#url.query), () => {
      const text = this.#params.toString();
      this.#url.query = text === '' ? null : text;
      this.#trim();
    });
  }
  #trim() {
    if (typeof this.#url.path === 'string' && this.#url.query === null && this.#url.fragment === null) this.#url.path = this.#url.path.replace(/ +$/, '');
  }
  #change(text, state, prepare) {
    const copy = { ...this.#url, path: Array.isArray(this.#url.path) ? [...this.#url.path] : this.#url.path };
    if (prepare) prepare(copy);
    const changed = parse(wellFormed(text), undefined, copy, state);
    if (changed !== null) this.#url = changed;
  }
  get #opaque() { return typeof this.#url.path === 'string'; }
  get #bare() { return this.#url.host === null || this.#url.host === '' || this.#url.scheme === 'file'; }
  get href() { return serialize(this.#url); }
  set href(value) {
    const url = parse(wellFormed(value));
    if (url === null) throw new TypeError('Invalid URL');
    this.#url = url;
    this.#reset();
  }
  get origin() {
    const { scheme, host, port, path } = this.#url;
    if (scheme === 'blob') {
      const inner = parse(String(path));
      return inner && /^https?$/.test(inner.scheme) ? `${inner.scheme}://${inner.host}${inner.port === null ? '' : ':' + inner.port}` : 'null';
    }
    return scheme in PORTS && scheme !== 'file' ? `${scheme}://${host}${port === null ? '' : ':' + port}` : 'null';
  }
  get protocol() { return this.#url.scheme + ':'; }
  set protocol(value) { this.#change(wellFormed(value) + ':', 'scheme start'); }
  get username() { return this.#url.username; }
  set username(value) { if (!this.#bare) this.#url.username = encode(wellFormed(value), IN_USER); }
  get password() { return this.#url.password; }
  set password(value) { if (!this.#bare) this.#url.password = encode(wellFormed(value), IN_USER); }
  get host() { const { host, port } = this.#url; return host === null ? '' : host + (port === null ? '' : ':' + port); }
  set host(value) {
    if (this.#opaque) return;
    const text = wellFormed(value);
    // a port that is no number ends the host, and leaves the port as it was
    const [, name, port] = /^([^[:]*|\[[^\]]*\])(?::(.*))?$/s.exec(text.split(isSpecial(this.#url) ? /[/\\?#]/ : /[/?#]/)[0]) || [];
    if (this.#url.scheme !== 'file' && name !== undefined && port !== undefined && name !== '') {
      this.#change(name, 'host');
      this.port = port === '' ? this.port : port;
    } else this.#change(text, 'host');
  }
  get hostname() { return this.#url.host ?? ''; }
  set hostname(value) { if (!this.#opaque) this.#change(value, 'hostname'); }
  get port() { return this.#url.port === null ? '' : String(this.#url.port); }
  set port(value) {
    if (this.#bare) return;
    if (wellFormed(value) === '') this.#url.port = null; else this.#change(value, 'port');
  }
  get pathname() { return pathOf(this.#url); }
  set pathname(value) { if (!this.#opaque) this.#change(value, 'path start', (url) => { url.path = []; }); }
  get search() { return this.#url.query ? '?' + this.#url.query : ''; }
  set search(value) {
    const text = wellFormed(value);
    if (text === '') { this.#url.query = null; this.#trim(); } else this.#change(text.replace(/^\?/, ''), 'query', (url) => { url.query = ''; });
    this.#reset();
  }
  get searchParams() { return this.#params; }
  get hash() { return this.#url.fragment ? '#' + this.#url.fragment : ''; }
  set hash(value) {
    const text = wellFormed(value);
    if (text === '') { this.#url.fragment = null; this.#trim(); } else this.#change(text.replace(/^#/, ''), 'fragment', (url) => { url.fragment = ''; });
  }
  toString() { return this.href; }
  toJSON() { return this.href; }
}
Object.defineProperty(URL.prototype, Symbol.toStringTag, { value: 'URL', configurable: true });
return { URL, URLSearchParams };
})
