// The title of a page, out of bytes that nobody vouches for.

const maxTitleLength = 300;
const named = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' };

/**
 * Undefined where there is none or the body is compressed all the same.
 * @param {Buffer} body
 * @param {string | undefined} contentType
 * @param {string | undefined} contentEncoding
 */
export function titleOf(body, contentType, contentEncoding) {
  if (contentEncoding !== undefined && contentEncoding !== 'identity') return undefined;
  const latin = /charset\s*=\s*"?(iso-8859-1|latin1|windows-1252)/i.test(contentType ?? '');
  const text = body.toString(latin ? 'latin1' : 'utf8');
  const start = /<title(?:\s[^>]{0,200})?>/i.exec(text);
  if (start === null) return undefined;
  const from = start.index + start[0].length;
  const [raw] = text.slice(from, from + 4 * maxTitleLength).split(/<\/title/i);
  const title = decode(raw).replace(/\s+/g, ' ').trim().slice(0, maxTitleLength);
  return title === '' ? undefined : title;
}

const decode = (text) =>
  text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,6}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return named[name.toLowerCase()] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : '\uFFFD';
  });
