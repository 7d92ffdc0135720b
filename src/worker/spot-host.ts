// Whether this machine may be taken away, and whom to ask. Nothing is sent anywhere to find out.
import { readFileSync } from 'node:fs';
import { SonarError } from '#sonar/platform/errors.ts';

export const spotModes = ['auto', 'on', 'off'] as const;
export type SpotMode = (typeof spotModes)[number];

const endpoints = { IPv4: 'http://169.254.169.254', IPv6: 'http://[fd00:ec2::254]' } as const;

/**
 * The instance metadata service to ask, or null for none. `auto` asks the one that AWS's own variables name, and
 * the well-known address only where the machine's firmware says that it is EC2's.
 * @throws SonarError `configuration` naming the variable that is no address.
 */
export function spotEndpoint(
  mode: SpotMode,
  environment: NodeJS.ProcessEnv,
  onEc2: () => boolean = firmwareIsEc2,
): string | null {
  if (mode === 'off') return null;
  const named = environment.AWS_EC2_METADATA_SERVICE_ENDPOINT;
  const disabled = environment.AWS_EC2_METADATA_DISABLED?.toLowerCase() === 'true';
  if (mode === 'auto' && disabled) return null;
  if (named !== undefined && named !== '') return checked(named);
  if (mode === 'auto' && !onEc2()) return null;
  const ipv6 = environment.AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE?.toLowerCase() === 'ipv6';
  return endpoints[ipv6 ? 'IPv6' : 'IPv4'];
}

function checked(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new SonarError(
      'configuration',
      `AWS_EC2_METADATA_SERVICE_ENDPOINT is no address: ${JSON.stringify(address.slice(0, 200))}; write http://HOST:PORT, or start the worker with --spot off`,
    );
  return url.href.replace(/\/+$/, '');
}

/** Nitro machines say it in their DMI tables, Xen ones in the hypervisor's uuid. */
function firmwareIsEc2(): boolean {
  return (
    firstBytes('/sys/class/dmi/id/sys_vendor').startsWith('Amazon EC2') ||
    firstBytes('/sys/hypervisor/uuid').startsWith('ec2')
  );
}

function firstBytes(path: string): string {
  try {
    return readFileSync(path, 'latin1').slice(0, 64);
  } catch {
    return '';
  }
}
