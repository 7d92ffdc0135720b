// What `sonar up` says while it comes up and when it is there.
import { pad, safeText } from './safe-text.ts';

export interface ProgressEvent {
  service: string;
  state: string;
  detail?: string;
  seconds?: number;
}

/** `postgres    ready        3.2 s  127.0.0.1:20001`. */
export function progressLine({ service, state, detail, seconds }: ProgressEvent): string {
  const took = seconds === undefined ? '' : `${seconds.toFixed(1)} s`;
  return [pad(service, 10, 'left'), pad(state, 11, 'left'), pad(took, 7, 'right'), safeText(detail ?? '')]
    .join(' ')
    .trimEnd();
}

/** Where everything is; the value of `sonar up --json`. No secret is in it. */
export interface UpReport {
  apiUrl: string;
  temporalUiUrl: string | null;
  roles: boolean;
  services: { name: string; address: string; external: boolean; log: string | null }[];
  /** Holds the address of the API and a token. */
  connectionFile: string;
  /** What roles that are started by hand need, for a shell. */
  environmentFile: string;
  /** The CLI finds the connection file by itself. */
  standardPlace: boolean;
}

export function upLines(report: UpReport): string[] {
  const port = new URL(report.apiUrl).port;
  return [
    '',
    `API           ${report.apiUrl}${report.roles ? '' : '  (not started)'}`,
    ...(report.temporalUiUrl === null ? [] : [`Temporal UI   ${report.temporalUiUrl}`]),
    ...(report.standardPlace
      ? [`Token         in ${report.connectionFile}; sonar finds it in this folder`]
      : [`Token         in ${report.connectionFile}; set SONAR_API_URL and SONAR_TOKEN from it`]),
    '',
    'Next, in another terminal:',
    ...(report.roles
      ? []
      : [`  set -a; . ${report.environmentFile}; set +a; sonar serve --role all --port ${port}`]),
    '  sonar worker start --name w1 --tags nmap',
    '  sonar definition apply FILE.yaml',
    '  sonar scan start NAME --allow 127.0.0.0/8 --input NAME=VALUE --wait',
    'Ctrl-C here stops everything; the data stays.',
  ];
}
