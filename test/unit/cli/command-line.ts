import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '#sonar/cli/program.ts';
import type { Sink } from '#sonar/cli/terminal.ts';

export class CapturedSink implements Sink {
  text = '';
  readonly isTerminal: boolean;
  columns = 80;
  rows = 24;

  constructor(isTerminal = false) {
    this.isTerminal = isTerminal;
  }

  write(text: string): void {
    this.text += text;
  }

  writeBytes(bytes: Uint8Array): Promise<void> {
    if (this.isTerminal) throw new Error('raw bytes to a terminal');
    this.text += Buffer.from(bytes).toString('latin1');
    return Promise.resolve();
  }

  size(): { columns: number; rows: number } {
    return { columns: this.columns, rows: this.rows };
  }
}

export interface Outcome {
  code: number;
  out: string;
  err: string;
}

/** The command line in this process, in a folder of its own. */
export class CommandLine {
  readonly folder = mkdtempSync(join(tmpdir(), 'sonar-cli-'));
  readonly interrupts = new Set<() => void>();
  environment: Record<string, string | undefined> = {};
  stdin = '';
  stdout = new CapturedSink();

  async run(...words: string[]): Promise<Outcome> {
    const stderr = new CapturedSink();
    this.stdout = new CapturedSink(this.stdout.isTerminal);
    const code = await runCli(words, {
      environment: this.environment,
      workingDirectory: this.folder,
      stdout: this.stdout,
      stderr,
      version: '1.2.3',
      entry: '/nowhere/main.ts',
      onInterrupt: (interrupted) => {
        this.interrupts.add(interrupted);
        return () => this.interrupts.delete(interrupted);
      },
      exitNow: (exitCode) => {
        throw new Error(`the process would have ended with ${exitCode}`);
      },
      readStdin: () => Promise.resolve(this.stdin),
    });
    return { code, out: this.stdout.text, err: stderr.text };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
