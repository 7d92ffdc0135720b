export type StackFaultCode =
  | 'aborted'
  | 'already_running'
  | 'data_unusable'
  | 'download_failed'
  | 'port_in_use'
  | 'service_failed'
  | 'unreachable';

/** A fault of the local services that an operator can mend: what is wrong, then the ways out, in the message. */
export class StackError extends Error {
  readonly code: StackFaultCode;
  readonly waysOut: readonly string[];

  constructor(code: StackFaultCode, what: string, waysOut: readonly string[] = [], options?: ErrorOptions) {
    const ways = waysOut.length > 0 ? `\nWays out:\n${waysOut.map((way) => `  - ${way}`).join('\n')}` : '';
    super(what + ways, options);
    this.name = 'StackError';
    this.code = code;
    this.waysOut = waysOut;
  }
}
