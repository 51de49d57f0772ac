// crypto: digests, and random values from the seeded generator of the program, so that a repeated attempt draws the same
// ones. They are not secret: whoever knows the run can compute them.
(function ({ next }) {
// The first 64 bits of the fractional parts of the cube roots of the first 80 primes; SHA-256 takes 32 bits of 64 of them.
const ROUNDS =
  '428a2f98d728ae227137449123ef65cdb5c0fbcfec4d3b2fe9b5dba58189dbbc3956c25bf348b53859f111f1b605d019923f82a4af194f9b' +
  'ab1c5ed5da6d8118d807aa98a303024212835b0145706fbe243185be4ee4b28c550c7dc3d5ffb4e272be5d74f27b896f80deb1fe3b1696b1' +
  '9bdc06a725c71235c19bf174cf692694e49b69c19ef14ad2efbe4786384f25e30fc19dc68b8cd5b5240ca1cc77ac9c652de92c6f592b0275' +
  '4a7484aa6ea6e4835cb0a9dcbd41fbd476f988da831153b5983e5152ee66dfaba831c66d2db43210b00327c898fb213fbf597fc7beef0ee4' +
  'c6e00bf33da88fc2d5a79147930aa72506ca6351e003826f142929670a0e6e7027b70a8546d22ffc2e1b21385c26c9264d2c6dfc5ac42aed' +
  '53380d139d95b3df650a73548baf63de766a0abb3c77b2a881c2c92e47edaee692722c851482353ba2bfe8a14cf10364a81a664bbc423001' +
  'c24b8b70d0f89791c76c51a30654be30d192e819d6ef5218d69906245565a910f40e35855771202a106aa07032bbd1b819a4c116b8d2d0c8' +
  '1e376c085141ab532748774cdf8eeb9934b0bcb5e19b48a8391c0cb3c5c95a634ed8aa4ae3418acb5b9cca4f7763e373682e6ff3d6b2b8a3' +
  '748f82ee5defb2fc78a5636f43172f6084c87814a1f0ab728cc702081a6439ec90befffa23631e28a4506cebde82bde9bef9a3f7b2c67915' +
  'c67178f2e372532bca273eceea26619cd186b8c721c0c207eada7dd6cde0eb1ef57d4f7fee6ed17806f067aa72176fba0a637dc5a2c898a6' +
  '113f9804bef90dae1b710b35131c471b28db77f523047d8432caab7b40c724933c9ebe0a15c9bebc431d67c49c100d4c4cc5d4becb3e42b6' +
  '597f299cfc657e2a5fcb6fab3ad6faec6c44198c4a475817';
// The same of the square roots of the first 8 primes (SHA-512, SHA-256), and of the next 8 (SHA-384).
const FIRST =
  '6a09e667f3bcc908bb67ae8584caa73b3c6ef372fe94f82ba54ff53a5f1d36f1510e527fade682d19b05688c2b3e6c1f1f83d9abfb41bd6b' +
  '5be0cd19137e2179';
const NEXT =
  'cbbb9d5dc1059ed8629a292a367cd5079159015a3070dd17152fecd8f70e593967332667ffc00b318eb44a8768581511db0c2e0d64f98fa7' +
  '47b5481dbefa4fa4';
const words = (text) => Int32Array.from({ length: text.length / 8 }, (_, i) => parseInt(text.slice(8 * i, 8 * i + 8), 16));
const high = (list) => list.filter((_, i) => i % 2 === 0);
const K64 = words(ROUNDS), K32 = high(K64);

// `block` bytes at a time, the last one ends with the length in bits.
function padded(bytes, block) {
  const tail = block / 8, size = Math.ceil((bytes.length + 1 + tail) / block) * block, out = new Uint8Array(size), view = new DataView(out.buffer);
  out.set(bytes);
  out[bytes.length] = 0x80;
  view.setUint32(size - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(size - 4, bytes.length * 8 >>> 0);
  return view;
}

function sha1(bytes) {
  const data = padded(bytes, 64), state = words('67452301efcdab8998badcfe10325476c3d2e1f0'), w = new Int32Array(80);
  for (let at = 0; at < data.byteLength; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = data.getInt32(at + 4 * i);
    for (let i = 16; i < 80; i++) { const x = w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16]; w[i] = x << 1 | x >>> 31; }
    let [a, b, c, d, e] = state;
    for (let i = 0; i < 80; i++) {
      const f = i < 20 ? (b & c | ~b & d) + 0x5a827999 : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
        : i < 60 ? (b & c | b & d | c & d) + 0x8f1bbcdc : (b ^ c ^ d) + 0xca62c1d6;
      const t = (a << 5 | a >>> 27) + f + e + w[i] | 0;
      e = d; d = c; c = b << 30 | b >>> 2; b = a; a = t;
    }
    state[0] += a; state[1] += b; state[2] += c; state[3] += d; state[4] += e;
  }
  return state;
}

function sha256(bytes) {
  const data = padded(bytes, 64), state = high(words(FIRST)), w = new Int32Array(64);
  for (let at = 0; at < data.byteLength; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = data.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15], y = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10);
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const t = h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (e & f ^ ~e & g) + K32[i] + w[i] | 0;
      const u = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & b ^ a & c ^ b & c) | 0;
      h = g; g = f; f = e; e = d + t | 0; d = c; c = b; b = a; a = t + u | 0;
    }
    state[0] += a; state[1] += b; state[2] += c; state[3] += d; state[4] += e; state[5] += f; state[6] += g; state[7] += h;
  }
  return state;
}

// 64 bits are two words, the high one first; sums carry over by doubles.
function sha512(bytes, first) {
  const data = padded(bytes, 128), state = words(first), w = new Int32Array(160), s = new Int32Array(16);
  const turn = (h, l, n) => n < 32 ? h >>> n | l << 32 - n : l >>> n - 32 | h << 64 - n;
  for (let at = 0; at < data.byteLength; at += 128) {
    for (let i = 0; i < 32; i++) w[i] = data.getInt32(at + 4 * i);
    for (let i = 32; i < 160; i += 2) {
      const xh = w[i - 30], xl = w[i - 29], yh = w[i - 4], yl = w[i - 3];
      const low = ((turn(xl, xh, 1) ^ turn(xl, xh, 8) ^ (xl >>> 7 | xh << 25)) >>> 0) + ((turn(yl, yh, 19) ^ turn(yl, yh, 61) ^ (yl >>> 6 | yh << 26)) >>> 0)
        + (w[i - 31] >>> 0) + (w[i - 13] >>> 0);
      w[i] = (turn(xh, xl, 1) ^ turn(xh, xl, 8) ^ xh >>> 7) + (turn(yh, yl, 19) ^ turn(yh, yl, 61) ^ yh >>> 6) + w[i - 32] + w[i - 14] + Math.floor(low / 2 ** 32);
      w[i + 1] = low;
    }
    s.set(state);
    for (let i = 0; i < 160; i += 2) {
      const eh = s[8], el = s[9], ah = s[0], al = s[1];
      const low = (s[15] >>> 0) + ((turn(el, eh, 14) ^ turn(el, eh, 18) ^ turn(el, eh, 41)) >>> 0) + ((el & s[11] ^ ~el & s[13]) >>> 0) + (K64[i + 1] >>> 0) + (w[i + 1] >>> 0);
      const th = s[14] + (turn(eh, el, 14) ^ turn(eh, el, 18) ^ turn(eh, el, 41)) + (eh & s[10] ^ ~eh & s[12]) + K64[i] + w[i] + Math.floor(low / 2 ** 32) | 0, tl = low | 0;
      const low2 = ((turn(al, ah, 28) ^ turn(al, ah, 34) ^ turn(al, ah, 39)) >>> 0) + ((al & s[3] ^ al & s[5] ^ s[3] & s[5]) >>> 0) + (tl >>> 0);
      const uh = (turn(ah, al, 28) ^ turn(ah, al, 34) ^ turn(ah, al, 39)) + (ah & s[2] ^ ah & s[4] ^ s[2] & s[4]) + th + Math.floor(low2 / 2 ** 32) | 0;
      s.copyWithin(2, 0, 14);
      const low3 = (s[9] >>> 0) + (tl >>> 0);
      s[8] = s[8] + th + Math.floor(low3 / 2 ** 32);
      s[9] = low3;
      s[0] = uh; s[1] = low2;
    }
    for (let i = 0; i < 16; i += 2) {
      const low = (state[i + 1] >>> 0) + (s[i + 1] >>> 0);
      state[i] = state[i] + s[i] + Math.floor(low / 2 ** 32);
      state[i + 1] = low;
    }
  }
  return state;
}

const DIGESTS = {
  __proto__: null, 'SHA-1': sha1, 'SHA-256': sha256,
  'SHA-384': (bytes) => sha512(bytes, NEXT).subarray(0, 12), 'SHA-512': (bytes) => sha512(bytes, FIRST),
};

async function digest(algorithm, data) {
  const name = String(typeof algorithm === 'object' && algorithm !== null ? algorithm.name : algorithm).toUpperCase();
  const hash = DIGESTS[name];
  if (hash === undefined) throw new DOMException(`${name} is none of ${Object.keys(DIGESTS).join(', ')}`, 'NotSupportedError');
  if (!ArrayBuffer.isView(data) && !(data instanceof ArrayBuffer)) throw new TypeError('the data must be an ArrayBuffer or a view of one');
  const state = hash(ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data));
  const view = new DataView(new ArrayBuffer(4 * state.length));
  state.forEach((word, i) => view.setInt32(4 * i, word));
  return view.buffer;
}

function getRandomValues(target) {
  const isWhole = ArrayBuffer.isView(target) && !(target instanceof DataView) && !/Float/.test(target.constructor.name);
  if (!isWhole) throw new DOMException('the target must be an array of integers', 'TypeMismatchError');
  if (target.byteLength > 65536) throw new DOMException('at most 65536 bytes at a time', 'QuotaExceededError');
  const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
  for (let i = 0; i < bytes.length; i++) bytes[i] = next() >>> 24;
  return target;
}

function randomUUID() {
  const bytes = getRandomValues(new Uint8Array(16));
  bytes[6] = bytes[6] & 0x0f | 0x40;
  bytes[8] = bytes[8] & 0x3f | 0x80;
  return Array.from(bytes, (byte, i) => (i === 4 || i === 6 || i === 8 || i === 10 ? '-' : '') + byte.toString(16).padStart(2, '0')).join('');
}
return { crypto: { getRandomValues, randomUUID, subtle: { digest } } };
})
