// Who starts scans and gives commands while everything breaks: asks again until there is an answer, as people do.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiClient } from '#sonar/cli/api-client.ts';
import { uploadDefinitionFiles } from '#sonar/cli/file-upload.ts';
import type { ScanDetail } from '#sonar/contracts/scan-api.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { isSonarError } from '#sonar/platform/errors.ts';
import { pause } from '#sonar/platform/wait.ts';
import { definitionOf, type Places } from './definition-text.ts';
import type { Operating, Shape } from './shape.ts';

const againMs = 500;
const pollMs = 1_000;

export class Operator implements Operating {
  readonly #client: ApiClient;
  readonly #places: Places;
  readonly #signal: AbortSignal;

  constructor(client: ApiClient, places: Places, signal: AbortSignal) {
    this.#client = client;
    this.#places = places;
    this.#signal = signal;
  }

  get marks(): string {
    return this.#places.marks;
  }

  async define(shape: Shape, name: string, steps = shape.steps): Promise<number> {
    const folder = join(this.#places.files, shape.name);
    mkdirSync(folder, { recursive: true });
    const written = Object.entries(shape.files ?? {}).map(([file, content]) => {
      writeFileSync(join(folder, file), content);
      return [file, { path: file, kind: 'file' as const, digest: '' }] as const;
    });
    const files = { files: Object.fromEntries(written) };
    const text = definitionOf({ ...shape, steps }, this.#places, name);
    const { revision } = await this.#asked(async () =>
      this.#client.applyDefinition(
        text,
        written.length === 0
          ? undefined
          : await uploadDefinitionFiles(this.#client, files, join(folder, 'definition.yaml')),
      ),
    );
    return revision;
  }

  async setSecret(name: string, value: string): Promise<void> {
    await this.#asked(() => this.#client.setSecret(name, value));
  }

  async start(
    definition: string,
    clientKey: string,
    inputs: Record<string, string | string[]>,
  ): Promise<string> {
    const scope = { allow: ['127.0.0.0/8'], deny: [] };
    const started = await this.#asked(() =>
      this.#client.startScan({ definition, name: clientKey, clientKey, inputs, scope }),
    );
    return started.id;
  }

  look(scanId: string): Promise<ScanDetail> {
    return this.#asked(() => this.#client.scan(scanId));
  }

  async until(scanId: string, wanted: (detail: ScanDetail) => boolean): Promise<ScanDetail> {
    for (;;) {
      const detail = await this.look(scanId);
      if (wanted(detail) || !isScanOpen(detail.status)) return detail;
      await pause(pollMs, this.#signal);
    }
  }

  ended(scanId: string): Promise<ScanDetail> {
    return this.until(scanId, () => false);
  }

  async hold(scanId: string, ms: number): Promise<void> {
    await this.#unlessEnded(() => this.#client.pauseScan(scanId));
    await pause(ms, this.#signal);
    await this.#unlessEnded(() => this.#client.resumeScan(scanId));
  }

  async cancel(scanId: string): Promise<void> {
    await this.#unlessEnded(() => this.#client.cancelScan(scanId));
  }

  retry(scanId: string): Promise<void> {
    return this.#reopen(scanId, () => this.#client.retryScan(scanId));
  }

  repair(scanId: string): Promise<void> {
    return this.#reopen(scanId, () => this.#client.repairAll(scanId));
  }

  /** A command whose answer was lost has reopened the scan: it is not given twice. */
  async #reopen(scanId: string, ask: () => Promise<unknown>): Promise<void> {
    const before = (await this.look(scanId)).generation;
    for (;;) {
      try {
        await ask();
        return;
      } catch {
        this.#signal.throwIfAborted();
        if ((await this.look(scanId)).generation > before) return;
        await pause(againMs, this.#signal);
      }
    }
  }

  async #unlessEnded(ask: () => Promise<unknown>): Promise<void> {
    try {
      await this.#asked(ask);
    } catch (error) {
      if (!isSonarError(error, 'conflict')) throw error;
    }
  }

  async #asked<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        this.#signal.throwIfAborted();
        if (isSonarError(error) && !['unreachable', 'internal'].includes(error.code)) throw error;
        await pause(againMs, this.#signal);
      }
    }
  }
}
