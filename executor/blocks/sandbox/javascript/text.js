// TextEncoder and TextDecoder, as in the Encoding standard, for UTF-8, UTF-16 and windows-1252 (which is latin1 there).
(function ({ utf8, wellFormed }) {
const LABELS = {
  __proto__: null, 'utf-8': 'utf-8', utf8: 'utf-8', 'unicode-1-1-utf-8': 'utf-8', 'utf-16le': 'utf-16le', 'utf-16': 'utf-16le',
  'utf-16be': 'utf-16be', latin1: 'windows-1252', 'iso-8859-1': 'windows-1252', 'us-ascii': 'windows-1252', ascii: 'windows-1252',
  'windows-1252': 'windows-1252', cp1252: 'windows-1252',
};
const WESTERN = '\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178';
const AT_ONCE = 4096;

function bytesOf(source) {
  if (source === undefined) return new Uint8Array(0);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof ArrayBuffer || source instanceof SharedArrayBuffer) return new Uint8Array(source);
  throw new TypeError('the input must be an ArrayBuffer or a view of one');
}

class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(text = '') { return new Uint8Array(utf8(wellFormed(text))); }
  encodeInto(text, target) {
    let read = 0, written = 0;
    for (const c of wellFormed(text)) {
      const bytes = utf8(c);
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      read += c.length;
      written += bytes.length;
    }
    return { read, written };
  }
}

class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBOM;
  #rest = [];
  #begun = false;
  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    this.#encoding = LABELS[String(label).trim().toLowerCase()];
    if (this.#encoding === undefined) throw new RangeError(`the encoding ${label} is not supported`);
    this.#fatal = Boolean(fatal);
    this.#ignoreBOM = Boolean(ignoreBOM);
  }
  get encoding() { return this.#encoding; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#ignoreBOM; }
  decode(source, { stream = false } = {}) {
    let bytes = bytesOf(source);
    if (this.#rest.length) {
      const joined = new Uint8Array(this.#rest.length + bytes.length);
      joined.set(this.#rest);
      joined.set(bytes, this.#rest.length);
      bytes = joined;
    }
    const how = this.#encoding === 'utf-8' ? this.#utf8 : this.#encoding === 'windows-1252' ? this.#western : this.#utf16;
    this.#rest = [];
    const units = [];
    let out = '';
    const put = (point) => {
      if (point < 0) {
        if (this.#fatal) { this.#rest = []; this.#begun = false; throw new TypeError('the encoded data was not valid'); }
        point = 0xfffd;
      }
      if (!this.#begun) { this.#begun = true; if (point === 0xfeff && !this.#ignoreBOM && this.#encoding !== 'windows-1252') return; }
      units.push(point);
      if (units.length === AT_ONCE) { out += String.fromCodePoint(...units); units.length = 0; }
    };
    how.call(this, bytes, stream, put);
    if (!stream) { this.#begun = false; this.#rest = []; }
    return out + String.fromCodePoint(...units);
  }
  #western(bytes, stream, put) {
    for (const byte of bytes) put(byte >= 0x80 && byte < 0xa0 ? WESTERN.charCodeAt(byte - 0x80) : byte);
  }
  #utf16(bytes, stream, put) {
    const first = this.#encoding === 'utf-16le' ? 0 : 1;
    let i = 0;
    for (; i + 1 < bytes.length; i += 2) {
      const unit = bytes[i + first] | bytes[i + 1 - first] << 8;
      if (unit < 0xd800 || unit > 0xdfff) { put(unit); continue; }
      if (unit > 0xdbff) { put(-1); continue; }
      if (i + 3 >= bytes.length) { if (stream) break; put(-1); if (i + 2 < bytes.length) return; continue; }
      const low = bytes[i + 2 + first] | bytes[i + 3 - first] << 8;
      if (low < 0xdc00 || low > 0xdfff) { put(-1); continue; }
      put((unit - 0xd800) * 1024 + low - 0xdc00 + 0x10000);
      i += 2;
    }
    if (i < bytes.length) { if (stream) this.#rest = [...bytes.subarray(i)]; else put(-1); }
  }
  #utf8(bytes, stream, put) {
    for (let i = 0; i < bytes.length;) {
      const lead = bytes[i];
      if (lead < 0x80) { put(lead); i++; continue; }
      const more = lead >= 0xc2 && lead <= 0xdf ? 1 : lead >= 0xe0 && lead <= 0xef ? 2 : lead >= 0xf0 && lead <= 0xf4 ? 3 : 0;
      if (!more) { put(-1); i++; continue; }
      let low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80, high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      let point = lead & (0x3f >> more), seen = 0;
      while (seen < more && i + seen + 1 < bytes.length) {
        const byte = bytes[i + seen + 1];
        if (byte < low || byte > high) break;
        point = point << 6 | byte & 0x3f;
        low = 0x80; high = 0xbf;
        seen++;
      }
      if (seen === more) put(point);
      else if (stream && i + seen + 1 === bytes.length) { this.#rest = [...bytes.subarray(i)]; return; }
      else put(-1);
      i += seen + 1;
    }
  }
}
for (const made of [TextEncoder, TextDecoder]) Object.defineProperty(made.prototype, Symbol.toStringTag, { value: made.name, configurable: true });
return { TextEncoder, TextDecoder };
})
