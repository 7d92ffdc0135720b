import type { ProcessLedger } from './process-ledger.ts';
import { ManagedProcess, type ProcessSpec } from './process-supervision.ts';
import type { StackEvent } from './stack-event.ts';

/** The processes of one tier of a stack, in order of start. */
export class ProcessGroup {
  readonly #ledger: ProcessLedger;
  readonly #onProgress: (event: StackEvent) => void;
  readonly #processes: ManagedProcess[] = [];
  #stopping = false;

  constructor(ledger: ProcessLedger, onProgress: (event: StackEvent) => void) {
    this.#ledger = ledger;
    this.#onProgress = onProgress;
  }

  /** Starts a process of the group; when its start fails, nothing of it is left. */
  async launch(spec: Omit<ProcessSpec, 'onChange'>, signal: AbortSignal): Promise<ManagedProcess> {
    signal.throwIfAborted();
    const onChange = (state: 'stopped' | 'ready', detail: string): void =>
      this.#onProgress({ service: spec.name, state, detail });
    const managed = new ManagedProcess({ ...spec, onChange }, this.#ledger);
    if (this.#stopping) throw new Error(`${spec.name} is not started: the stack is being stopped`);
    this.#processes.push(managed);
    try {
      await managed.start(signal);
    } catch (fault) {
      await this.stopOne(managed);
      throw fault;
    }
    return managed;
  }

  /** Stops one of the group for good. */
  async stopOne(managed: ManagedProcess): Promise<void> {
    await managed.stop();
    const index = this.#processes.indexOf(managed);
    if (index >= 0) this.#processes.splice(index, 1);
  }

  /** Stops all at once. */
  async stopTogether(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#processes.map((managed) => this.#stop(managed)));
  }

  /** Stops one after the other, the last started first. */
  async stopInReverse(): Promise<void> {
    this.#stopping = true;
    for (const managed of this.#processes.toReversed()) await this.#stop(managed);
  }

  async #stop(managed: ManagedProcess): Promise<void> {
    await managed.stop();
    this.#onProgress({ service: managed.spec.name, state: 'stopped' });
  }
}
