// One HTML page about all endpoints below a folder. Everything on it comes from targets, so everything is
// escaped, and only http and https become links.
import { createReadStream } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArguments } from './arguments.mjs';

const maxDepth = 8;
const maxEndpoints = 100_000;
const maxCellLength = 500;

/** @param {readonly string[]} args @returns the exit code */
export async function writeReport(args) {
  const { positional } = parseArguments(args, [], 2);
  const [directory, out] = positional;
  const endpoints = [];
  let badLines = 0;
  for await (const file of filesBelow(directory, 0)) {
    for await (const line of createInterface({
      input: createReadStream(file),
      crlfDelay: Number.POSITIVE_INFINITY,
    })) {
      if (line.trim() === '') continue;
      const endpoint = endpointOf(line);
      if (endpoint === null) badLines += 1;
      else if (endpoints.length < maxEndpoints) endpoints.push(endpoint);
    }
  }
  endpoints.sort((a, b) => (a.url < b.url ? -1 : a.url > b.url ? 1 : 0));
  await writeFile(out, page(endpoints, badLines));
  return 0;
}

/** Regular files only: a link could lead anywhere. */
async function* filesBelow(directory, depth) {
  const entries = await readdir(directory, { withFileTypes: true });
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(directory, entry.name);
    if (entry.isFile()) yield path;
    else if (entry.isDirectory() && depth < maxDepth) yield* filesBelow(path, depth + 1);
  }
}

function endpointOf(line) {
  try {
    const value = JSON.parse(line);
    return typeof value?.url === 'string' ? value : null;
  } catch {
    return null;
  }
}

const escape = (value) =>
  String(value ?? '')
    .slice(0, maxCellLength)
    .toWellFormed()
    .replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);

const cell = (value) => `<td>${escape(typeof value === 'object' ? '' : value)}</td>`;

function row({ url, status, title, server, tls }) {
  const link = /^https?:\/\//i.test(url)
    ? `<a rel="noreferrer noopener" href="${escape(url)}">${escape(url)}</a>`
    : escape(url);
  return `<tr><td>${link}</td>${cell(status)}${cell(title)}${cell(server)}${cell(tls?.subject)}</tr>`;
}

const page = (endpoints, badLines) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Endpoints</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #1a1a1a; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #ddd; vertical-align: top; overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>${endpoints.length} endpoints</h1>
${badLines === 0 ? '' : `<p>${badLines} lines could not be read.</p>\n`}<table>
<thead><tr><th>URL</th><th>Status</th><th>Title</th><th>Server</th><th>Certificate</th></tr></thead>
<tbody>
${endpoints.map(row).join('\n')}
</tbody>
</table>
</body>
</html>
`;
