// What one command has at hand: its connection, its output, its interruption.
import type { ApiClient } from './api-client.ts';
import { type Environment, findConnection, workerEnvironment } from './connection.ts';
import { safeJson } from './safe-text.ts';
import { type Column, renderTable } from './table.ts';
import { type Sink, wantsColour, widthOf } from './terminal.ts';

/** The process around the CLI; a test gives its own. */
export interface Surroundings {
  environment: Environment;
  workingDirectory: string;
  stdout: Sink;
  stderr: Sink;
  version: string;
  /** The program's entry, for commands that start it again. */
  entry: string;
  /** Calls back at each SIGINT or SIGTERM; gives the function that ends this. */
  onInterrupt: (interrupted: () => void) => () => void;
  /** Ends the process at once. */
  exitNow: (code: number) => never;
  /** All of standard input. */
  readStdin: () => Promise<string>;
}

export interface GlobalOptions {
  json?: boolean;
  api?: string;
  token?: string;
}

/** One call of a command. */
export class Session {
  readonly surroundings: Surroundings;
  readonly json: boolean;
  readonly #options: GlobalOptions;

  constructor(surroundings: Surroundings, options: GlobalOptions) {
    this.surroundings = surroundings;
    this.json = options.json ?? false;
    this.#options = options;
  }

  /** The client is loaded when a command needs it: the parser of answers takes a third of a start. */
  async api(signal?: AbortSignal): Promise<ApiClient> {
    const { environment, workingDirectory } = this.surroundings;
    const connection = findConnection(this.#options, environment, workingDirectory);
    const { createApiClient } = await import('./api-client.ts');
    return createApiClient(connection, signal === undefined ? {} : { signal });
  }

  /** The environment of a tag worker on this machine. */
  workerEnvironment(): Record<string, string | undefined> {
    const { environment, workingDirectory } = this.surroundings;
    return workerEnvironment(this.#options, environment, workingDirectory);
  }

  /** One line on stdout; the caller makes hostile parts safe. */
  say(line: string): void {
    this.surroundings.stdout.write(`${line}\n`);
  }

  /** One line on stderr: hints that are no part of the answer. Silent with `--json`. */
  hint(line: string): void {
    if (!this.json) this.surroundings.stderr.write(`${line}\n`);
  }

  /** The one JSON value of a command. */
  sayJson(value: unknown): void {
    const indent = this.surroundings.stdout.isTerminal ? 2 : 0;
    this.surroundings.stdout.write(`${safeJson(value, indent)}\n`);
  }

  /** A value as JSON, or as the lines that `text` makes of it. */
  answer<Value>(value: Value, text: (value: Value) => readonly string[]): void {
    if (this.json) this.sayJson(value);
    else for (const line of text(value)) this.say(line);
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
    const { stdout, environment } = this.surroundings;
    return renderTable(columns, rows, { width: widthOf(stdout), colour: wantsColour(stdout, environment) });
  }

  /** A list as `{items, next}` or as a table; `none` is said in place of an empty table. */
  answerList<Row>(
    page: { items: Row[]; next: string | null },
    columns: readonly Column<Row>[],
    none: string,
  ): void {
    if (this.json) {
      this.sayJson(page);
      return;
    }
    if (page.items.length === 0) this.hint(none);
    else for (const line of this.table(columns, page.items)) this.say(line);
    if (page.next !== null) this.hint(`there is more: --after ${page.next}, or a higher --limit`);
  }
}

/** Runs the work of a command; what it returns is the exit code, nothing means 0. */
export type Run = (work: (session: Session) => Promise<number | undefined | void>) => Promise<void>;
