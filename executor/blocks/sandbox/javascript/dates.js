// `dates`: what programs do with dates, without Intl and without time zones of a machine. All of it is in UTC, or at
// an offset that is passed. A date is a Date, milliseconds or an ISO text; what is returned is a new Date.
(function () {
const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MS = { __proto__: null, milliseconds: 1, seconds: 1e3, minutes: 6e4, hours: 36e5, days: 864e5, weeks: 6048e5 };
const TOKEN = /'((?:[^']|'')*)'|yyyy|MMMM|MMM|MM|M|dd|d|EEEE|EEE|HH|H|hh|h|mm|ss|SSS|a|XXX/g;
const UNITS = 'years, months, weeks, days, hours, minutes, seconds, milliseconds';

function dateOf(value) {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) throw new RangeError('this is not a date: ' + String(value));
  return date;
}
function offsetMs(text) {
  if (text === undefined || text === 'Z') return 0;
  const found = /^([+-])([01][0-9]|2[0-3]):([0-5][0-9])$/.exec(text);
  if (!found) throw new RangeError('an offset is like +02:00: ' + String(text));
  return (found[1] === '-' ? -1 : 1) * (found[2] * 60 + +found[3]) * 6e4;
}
const unitOf = (unit) => {
  const many = String(unit).endsWith('s') ? String(unit) : unit + 's';
  if (!(many in MS) && many !== 'months' && many !== 'years') throw new RangeError(`the unit ${unit} is none of ${UNITS}`);
  return many;
};
const digits = (number, length) => String(number).padStart(length, '0');

function format(value, pattern = 'yyyy-MM-dd', offset = 'Z') {
  const d = new Date(dateOf(value).getTime() + offsetMs(offset)), hour = d.getUTCHours();
  return pattern.replace(TOKEN, (token, literal) => {
    if (literal !== undefined) return literal === '' ? "'" : literal.replaceAll("''", "'");
    switch (token) {
      case 'yyyy': return digits(d.getUTCFullYear(), 4);
      case 'MMMM': return MONTHS[d.getUTCMonth()];
      case 'MMM': return MONTHS[d.getUTCMonth()].slice(0, 3);
      case 'MM': return digits(d.getUTCMonth() + 1, 2);
      case 'M': return String(d.getUTCMonth() + 1);
      case 'dd': return digits(d.getUTCDate(), 2);
      case 'd': return String(d.getUTCDate());
      case 'EEEE': return DAYS[d.getUTCDay()];
      case 'EEE': return DAYS[d.getUTCDay()].slice(0, 3);
      case 'HH': return digits(hour, 2);
      case 'H': return String(hour);
      case 'hh': return digits(hour % 12 || 12, 2);
      case 'h': return String(hour % 12 || 12);
      case 'mm': return digits(d.getUTCMinutes(), 2);
      case 'ss': return digits(d.getUTCSeconds(), 2);
      case 'SSS': return digits(d.getUTCMilliseconds(), 3);
      case 'a': return hour < 12 ? 'AM' : 'PM';
      default: return offset;
    }
  });
}

function parse(text, pattern = 'yyyy-MM-dd', offset = 'Z') {
  const names = [];
  const escape = (s) => s.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  let source = '', from = 0;
  for (const found of pattern.matchAll(TOKEN)) {
    source += escape(pattern.slice(from, found.index));
    from = found.index + found[0].length;
    const token = found[0];
    if (found[1] !== undefined) { source += escape(found[1] === '' ? "'" : found[1].replaceAll("''", "'")); continue; }
    names.push(token);
    source += token === 'MMMM' || token === 'MMM' || token.startsWith('E') ? '([A-Za-z]+)' : token === 'a' ? '([AaPp][Mm])'
      : token === 'XXX' ? '(Z|[+-][0-9]{2}:[0-9]{2})' : token.length === 1 ? '([0-9]{1,2})' : `([0-9]{${token.length}})`;
  }
  const found = new RegExp('^' + source + escape(pattern.slice(from)) + '$').exec(text), fail = () => {
    throw new RangeError(`${JSON.stringify(text)} is not a date written as ${pattern}`);
  };
  if (!found) fail();
  let [year, month, day, hour, minute, second, ms, half] = [1970, 1, 1, 0, 0, 0, 0, null];
  names.forEach((token, i) => {
    const piece = found[i + 1];
    if (token === 'yyyy') year = +piece;
    else if (token.startsWith('MMM')) month = 1 + MONTHS.findIndex((name) => (token === 'MMM' ? name.slice(0, 3) : name).toLowerCase() === piece.toLowerCase());
    else if (token[0] === 'M') month = +piece;
    else if (token[0] === 'd') day = +piece;
    else if (token[0] === 'H' || token[0] === 'h') hour = +piece;
    else if (token === 'mm') minute = +piece;
    else if (token === 'ss') second = +piece;
    else if (token === 'SSS') ms = +piece;
    else if (token === 'a') half = piece.toLowerCase();
    else if (token === 'XXX') offset = piece;
  });
  if (half !== null) { if (hour < 1 || hour > 12) fail(); hour = hour % 12 + (half === 'pm' ? 12 : 0); }
  if (month < 1 || month > 12 || day < 1 || day > lastDay(year, month - 1) || hour > 23 || minute > 59 || second > 59) fail();
  return new Date(utc(year, month - 1, day) + hour * 36e5 + minute * 6e4 + second * 1e3 + ms - offsetMs(offset));
}

function utc(year, month, day) { return new Date(0).setUTCFullYear(year, month, day); }
function lastDay(year, month) { return new Date(utc(year, month + 1, 0)).getUTCDate(); }

function add(value, amounts) {
  const date = dateOf(value);
  let months = 0, ms = 0;
  for (const unit of Object.keys(amounts)) {
    const many = unitOf(unit), amount = amounts[unit];
    if (!Number.isFinite(amount)) throw new RangeError(`the number of ${many} is no number`);
    if (many in MS) ms += amount * MS[many]; else months += Math.trunc(amount) * (many === 'years' ? 12 : 1);
  }
  if (months) {
    const day = date.getUTCDate();
    date.setUTCDate(1);
    date.setUTCMonth(date.getUTCMonth() + months);
    date.setUTCDate(Math.min(day, lastDay(date.getUTCFullYear(), date.getUTCMonth())));
  }
  return dateOf(date.getTime() + ms);
}

function startOf(value, unit) {
  const date = dateOf(value), many = unitOf(unit), year = date.getUTCFullYear();
  if (many === 'years') return new Date(utc(year, 0, 1));
  if (many === 'months') return new Date(utc(year, date.getUTCMonth(), 1));
  const days = Math.floor(date.getTime() / MS.days);
  if (many === 'weeks') return new Date((days - (date.getUTCDay() + 6) % 7) * MS.days);
  return new Date(Math.floor(date.getTime() / MS[many]) * MS[many]);
}

// Whole units from `first` to `second`, negative when `second` is earlier.
function difference(first, second, unit = 'days') {
  const from = dateOf(first), to = dateOf(second), many = unitOf(unit);
  if (many in MS) return Math.trunc((to - from) / MS[many]) + 0;
  let months = (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth();
  if (months > 0 && add(from, { months }) > to) months--;
  if (months < 0 && add(from, { months }) < to) months++;
  return Math.trunc(many === 'years' ? months / 12 : months) + 0;
}

// The week of ISO 8601: weeks begin on Monday, the first one has the first Thursday of the year.
function week(value) {
  const thursday = new Date(startOf(value, 'week').getTime() + 3 * MS.days), year = thursday.getUTCFullYear();
  return { year, week: 1 + Math.floor((thursday.getTime() - utc(year, 0, 1)) / MS.weeks) };
}
return { dates: { format, parse, add, startOf, difference, week } };
})
