// What one port says over HTTPS or, where it speaks no TLS, over HTTP. One JSON line, or an empty file.
import { writeFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { isIP, isIPv6 } from 'node:net';
import { hostArgument, parseArguments, requiredOption, wholeNumber } from './arguments.mjs';
import { titleOf } from './title.mjs';

/** Bytes of a body that are read: a title stands early. */
const maxBodyBytes = 1024 * 1024;
/** Characters of a header value that are kept. */
const maxHeaderLength = 1_024;

/** @param {readonly string[]} args @returns the exit code */
export async function probeWeb(args) {
  const { options } = parseArguments(args, ['url-host', 'port', 'out', 'timeout-ms'], 0);
  const host = hostArgument(requiredOption(options, 'url-host'));
  const port = wholeNumber(requiredOption(options, 'port'), '--port', 1, 65_535);
  const out = requiredOption(options, 'out');
  const timeoutMs = wholeNumber(options.get('timeout-ms') ?? '5000', '--timeout-ms', 1, 60_000);
  const page =
    (await fetchPage('https', host, port, timeoutMs)) ?? (await fetchPage('http', host, port, timeoutMs));
  await writeFile(out, page === null ? '' : `${JSON.stringify(page)}\n`);
  return 0;
}

/**
 * The first answer, redirects included: they are told, never followed. Null when nothing there speaks it.
 * @param {'http' | 'https'} scheme
 * @param {string} host
 * @param {number} port
 * @param {number} timeoutMs for the whole exchange
 */
function fetchPage(scheme, host, port, timeoutMs) {
  const url = new URL(`${scheme}://${isIPv6(host) ? `[${host}]` : host}:${port}/`);
  return new Promise((resolve) => {
    let done = false;
    const finish = (page) => {
      if (done) return;
      done = true;
      clearTimeout(deadline);
      request.destroy();
      resolve(page);
    };
    const request = (scheme === 'https' ? https : http).request({
      host,
      port,
      path: '/',
      method: 'GET',
      agent: false,
      headers: {
        Host: url.host,
        'User-Agent': 'sonar-probe',
        Accept: '*/*',
        'Accept-Encoding': 'identity',
        Connection: 'close',
      },
      // Servers that are surveyed speak as they do: certificates and old versions are what is looked at.
      ...(scheme === 'https' ? tlsOptions(host) : {}),
      insecureHTTPParser: true,
    });
    const deadline = setTimeout(() => finish(partial?.() ?? null), timeoutMs);
    /** @type {undefined | (() => object)} what is known so far, once the head has come */
    let partial;
    request.on('error', () => finish(partial?.() ?? null));
    request.on('upgrade', (response) => finish(describe(url, response, Buffer.alloc(0))));
    request.on('response', (response) => {
      const pieces = [];
      let size = 0;
      const certificate = scheme === 'https' ? describeTls(response.socket) : undefined;
      partial = () => describe(url, response, Buffer.concat(pieces).subarray(0, maxBodyBytes), certificate);
      response.on('data', (piece) => {
        pieces.push(piece);
        size += piece.length;
        if (size >= maxBodyBytes) finish(partial());
      });
      response.on('end', () => finish(partial()));
      response.on('error', () => finish(partial()));
    });
    request.end();
  });
}

const tlsOptions = (host) => ({
  rejectUnauthorized: false,
  minVersion: 'TLSv1',
  ciphers: 'DEFAULT:@SECLEVEL=0',
  ...(isIP(host) === 0 ? { servername: host } : {}),
});

function describe(url, response, body, tls) {
  const header = (name) => {
    const value = response.headers[name];
    return value === undefined ? undefined : String(value).slice(0, maxHeaderLength);
  };
  // Fields that are undefined are left out of the line.
  return {
    url: url.href,
    status: response.statusCode,
    title: titleOf(body, response.headers['content-type'], response.headers['content-encoding']),
    server: header('server'),
    location: header('location'),
    contentType: header('content-type'),
    bytes: body.length,
    tls,
  };
}

/** @param {import('node:tls').TLSSocket} socket */
function describeTls(socket) {
  const {
    subject,
    issuer,
    valid_from: validFrom,
    valid_to: validTo,
    fingerprint256,
  } = socket.getPeerCertificate();
  return {
    version: socket.getProtocol() ?? undefined,
    subject: nameText(subject),
    issuer: nameText(issuer),
    validFrom: isoDate(validFrom),
    validTo: isoDate(validTo),
    sha256: fingerprint256?.replaceAll(':', '').toLowerCase(),
  };
}

/** `C=DE, O=Example, CN=example.test` */
const nameText = (name) =>
  name === undefined
    ? undefined
    : Object.entries(name)
        .map(([key, value]) => `${key}=${[value].flat().join('+')}`)
        .join(', ')
        .slice(0, maxHeaderLength);

function isoDate(text) {
  const date = new Date(text ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
