import { accessSync, constants, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

interface Service {
  image: string;
  restart?: string;
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  healthcheck?: { test: string[] };
  depends_on?: Record<string, { condition: string }>;
}

const root = join(import.meta.dirname, '..', '..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const text = read('docker-compose.yml');
const compose = parse(text) as { services: Record<string, Service>; volumes: Record<string, unknown> };
const services = Object.entries(compose.services);
const jobs = services.filter(([, { restart }]) => restart === 'no');
const daemons = services.filter(([, { restart }]) => restart !== 'no');

/** Names that the file reads from the environment, with what stands after the name. */
const variables = [...text.matchAll(/\$\{(\w+)([^}]*)\}/g)].map(([, name = '', rest = '']) => ({
  name,
  rest,
}));

describe('docker-compose.yml', () => {
  test('has the services of a deployment', () => {
    expect(services.map(([name]) => name).toSorted()).toEqual([
      'minio',
      'minio-bucket',
      'postgres',
      'rabbitmq',
      'temporal',
      'temporal-namespace',
      'temporal-schema',
      'temporal-ui',
    ]);
  });

  test.each(daemons)('%s restarts by itself and is proved healthy', (name, { restart, healthcheck }) => {
    expect(restart).toBe('unless-stopped');
    const probing = jobs.filter(([, job]) => job.depends_on?.[name]?.condition === 'service_started');
    expect(healthcheck !== undefined || probing.length > 0).toBe(true);
  });

  test.each(jobs)('job %s waits for what it works on', (_name, { depends_on, healthcheck }) => {
    expect(Object.keys(depends_on ?? {})).not.toEqual([]);
    expect(healthcheck).toBeUndefined();
  });

  test('every dependency is a service that can meet its condition', () => {
    const broken = services.flatMap(([name, { depends_on = {} }]) =>
      Object.entries(depends_on)
        .filter(([other, { condition }]) => !canMeet(compose.services[other], condition))
        .map(([other, { condition }]) => `${name} → ${other}: ${condition}`),
    );
    expect(broken).toEqual([]);
  });

  test.each(services)('%s is pinned to a version', (_name, { image }) => {
    expect(image).toMatch(/^[a-z0-9/-]+:(\d+\.\d+|RELEASE\.\d{4}-)[\w.-]*$/);
  });

  test.each(services)('%s publishes on loopback only', (_name, { ports = [] }) => {
    expect(ports.filter((port) => !/^127\.0\.0\.1:\$\{SONAR_\w+_PORT:-\d+\}:\d+$/.test(port))).toEqual([]);
  });

  test('no two published ports have one default', () => {
    const defaults = services.flatMap(([, { ports = [] }]) =>
      ports.map((port) => port.match(/:-(\d+)\}/)?.[1]),
    );
    expect(new Set(defaults).size).toBe(defaults.length);
  });

  test.each(services)('%s holds no secret of its own', (_name, { environment = {} }) => {
    const secrets = Object.entries(environment).filter(([name]) =>
      /PASS|PWD|SECRET|TOKEN|KEY|ROOT_USER/.test(name),
    );
    expect(secrets.filter(([, value]) => !/^\$\{\w+:\?[^}]+\}$/.test(value))).toEqual([]);
  });

  test('the example environment names every variable and gives no secret a value', () => {
    const example = read('deploy/compose.env.example');
    const required = variables.filter(({ rest }) => rest.startsWith(':?')).map(({ name }) => name);
    const optional = variables
      .filter(({ rest }) => rest.startsWith(':-'))
      .map(({ name, rest }) => name + rest.replace(':-', '='));
    expect(required.length + optional.length).toBe(variables.length);
    expect([...example.matchAll(/^(\w+)=(.*)$/gm)].map(([line]) => line).toSorted()).toEqual(
      [...new Set(required)].map((name) => `${name}=`).toSorted(),
    );
    expect([...example.matchAll(/^# (\w+=.+)$/gm)].map(([, setting = '']) => setting).toSorted()).toEqual(
      [...new Set(optional)].toSorted(),
    );
  });

  test('data lives in named volumes, and every mounted file is in the tree', () => {
    const mounts = services.flatMap(([, { volumes = [] }]) =>
      volumes.map((volume) => volume.split(':')[0] ?? ''),
    );
    const files = mounts.filter((source) => source.startsWith('./'));
    expect(files.filter((file) => !isReadable(file))).toEqual([]);
    expect(mounts.filter((source) => !source.startsWith('./')).toSorted()).toEqual(
      Object.keys(compose.volumes).toSorted(),
    );
  });
});

function canMeet(service: Service | undefined, condition: string): boolean {
  switch (condition) {
    case 'service_healthy':
      return service?.healthcheck !== undefined;
    case 'service_completed_successfully':
      return service?.restart === 'no';
    case 'service_started':
      return service !== undefined;
    default:
      return false;
  }
}

function isReadable(file: string): boolean {
  try {
    accessSync(join(root, file), constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
