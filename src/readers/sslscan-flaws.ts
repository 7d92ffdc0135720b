// What is wrong with a TLS service by sslscan's own words: it prints facts and colours, and names no findings.
import { valueOf } from './hosts-xml.ts';

type Attributes = Record<string, string>;

export interface SslscanTest {
  host: string | null;
  sni: string | null;
  port: number | null;
  protocols: string[];
  ciphers: Attributes[];
  insecureRenegotiation: boolean;
  compression: boolean;
  heartbleed: boolean;
  /** Elements of the certificate: name → text. */
  certificate: Record<string, string>;
}

export interface SslscanFlaw {
  rule: string;
  name: string;
  severity: 'low' | 'medium' | 'high' | 'critical';
  /** The protocols or ciphers that it is about. */
  evidence: string[];
}

/** Deprecated by RFC 6176, 7568 and 8996. */
const oldProtocols: readonly [protocol: string, severity: SslscanFlaw['severity']][] = [
  ['SSLv2', 'critical'],
  ['SSLv3', 'high'],
  ['TLSv1.0', 'low'],
  ['TLSv1.1', 'low'],
];

/** sslscan's `strength` of a cipher that is neither acceptable nor strong. */
const weakStrengths: readonly [strength: string, severity: SslscanFlaw['severity']][] = [
  ['null', 'high'],
  ['anonymous', 'high'],
  ['weak', 'medium'],
  ['medium', 'low'],
];

export function sslscanFlaws(test: SslscanTest): SslscanFlaw[] {
  const isTrue = (element: string): boolean => test.certificate[element]?.trim() === 'true';
  const single = (
    found: boolean,
    rule: string,
    name: string,
    severity: SslscanFlaw['severity'],
  ): SslscanFlaw[] => (found ? [{ rule, name, severity, evidence: [] }] : []);
  return [
    ...oldProtocols.flatMap(([protocol, severity]) =>
      test.protocols.includes(protocol)
        ? [{ rule: `protocol:${protocol}`, name: `${protocol} is offered`, severity, evidence: [protocol] }]
        : [],
    ),
    ...weakStrengths.flatMap(([strength, severity]) => {
      const evidence = ciphersOf(test, strength);
      return evidence.length === 0
        ? []
        : [
            {
              rule: `cipher:${strength}`,
              name: `Ciphers rated ${strength} are accepted`,
              severity,
              evidence,
            },
          ];
    }),
    ...single(test.heartbleed, 'heartbleed', 'Heartbleed (CVE-2014-0160)', 'critical'),
    ...single(test.insecureRenegotiation, 'renegotiation', 'Insecure renegotiation', 'medium'),
    ...single(test.compression, 'compression', 'TLS compression (CRIME)', 'medium'),
    ...single(isTrue('expired'), 'certificate:expired', 'The certificate has expired', 'medium'),
    ...single(isTrue('self-signed'), 'certificate:self-signed', 'The certificate signed itself', 'low'),
  ];
}

const ciphersOf = ({ ciphers }: SslscanTest, wanted: string): string[] => [
  ...new Set(ciphers.flatMap(({ strength, cipher }) => (strength === wanted ? (valueOf(cipher) ?? []) : []))),
];
