// Arguments of the probe: strict, since items of a scan come in here. Plain JavaScript for any Node from 20 up.
import { isIP } from 'node:net';

/** What the caller got wrong: exit 2, as the commands of Unix do. */
export class UsageError extends Error {}

/**
 * `--name value` pairs and positional arguments. Every value is the argument after its name, whatever it holds;
 * a positional one never starts with "-".
 * @param {readonly string[]} args
 * @param {readonly string[]} names options that may be given, without their dashes
 * @param {number} positionalCount
 */
export function parseArguments(args, names, positionalCount) {
  /** @type {Map<string, string>} */
  const options = new Map();
  const positional = [];
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index];
    if (!argument.startsWith('-')) {
      positional.push(argument);
      continue;
    }
    const name = argument.slice(2);
    if (!argument.startsWith('--') || !names.includes(name))
      throw new UsageError(`unknown option ${JSON.stringify(argument)}`);
    if (options.has(name)) throw new UsageError(`--${name} is given twice`);
    index += 1;
    if (index >= args.length) throw new UsageError(`--${name} needs a value`);
    options.set(name, args[index]);
  }
  if (positional.length !== positionalCount) {
    throw new UsageError(
      `${positionalCount} arguments are needed besides the options, ${positional.length} are given`,
    );
  }
  return { options, positional };
}

/**
 * @param {Map<string, string>} options
 * @param {string} name
 */
export function requiredOption(options, name) {
  const value = options.get(name);
  if (value === undefined || value === '') throw new UsageError(`--${name} is missing`);
  return value;
}

/**
 * @param {string} text
 * @param {string} what
 * @param {number} minimum
 * @param {number} maximum
 */
export function wholeNumber(text, what, minimum, maximum) {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= minimum && value <= maximum) return value;
  throw new UsageError(
    `${what} must be a whole number from ${minimum} to ${maximum}, not ${JSON.stringify(text)}`,
  );
}

/** A name or an address; nothing that nmap would take for an option, a range or a network. @param {string} text */
export function hostArgument(text) {
  const name =
    /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z_]([a-z0-9_-]{0,61}[a-z0-9_])?\.?$/i;
  if (isIP(text) !== 0 || name.test(text)) return text;
  throw new UsageError(`${JSON.stringify(text)} is neither a host name nor an address`);
}

/** `80,443,1-1024` as ascending distinct numbers. @param {string} text */
export function portList(text) {
  const ports = new Set();
  for (const piece of text.split(',')) {
    const range = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(piece);
    const first = Number(range?.[1]);
    const last = Number(range?.[2] ?? range?.[1]);
    if (range === null || first < 1 || last > 65_535 || first > last) {
      throw new UsageError(`${JSON.stringify(piece)} is no port and no range of ports (1-65535)`);
    }
    for (let port = first; port <= last; port += 1) ports.add(port);
  }
  return [...ports].toSorted((a, b) => a - b);
}

/** The same ports in the shortest text, as nmap takes them. @param {readonly number[]} ports ascending */
export function portText(ports) {
  const runs = [];
  for (const port of ports) {
    const run = runs.at(-1);
    if (run !== undefined && run.last === port - 1) run.last = port;
    else runs.push({ first: port, last: port });
  }
  return runs.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}
