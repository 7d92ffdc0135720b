// Readers of tools that look at web servers.
import { place } from './reader-catalog-network.ts';

const webPlace = {
  url: 'The URL, without user information and fragment.',
  host: place.host,
  port: 'Number of the port, also where the URL leaves it out.',
  scheme: 'http or https.',
  path: 'Path of the URL.',
  origin: 'Scheme, host and port of the URL, as `https://www.example.com:8443`.',
} as const;

const page = {
  status: 'Status of the answer, or null.',
  content_type: 'Content type of the answer, or null.',
  content_length: 'Bytes of the answer, or null.',
} as const;

const technologies = 'What the page is made with, as `name` or `name:version`.';

/** Of tools that also report what did not answer. */
const probed = {
  ...webPlace,
  url: 'The URL; null where nothing answered, so that `pick: url` passes such rows over.',
  failed: 'Whether nothing answered; such rows make no records.',
} as const;

export const webReaders = {
  httpx: {
    reads: 'httpx, JSON Lines (-json) or lines that begin with a URL',
    rowFields: {
      ...probed,
      ip: place.ip,
      ips: 'All addresses of the host.',
      ...page,
      title: 'Title of the page, or null.',
      server: 'Server header, or null.',
      redirect: 'Where a redirect points, or null.',
      final_url: 'Where redirects ended, or null.',
      technologies,
    },
    ownRecords: true,
    records: ['endpoint', 'domain', 'address', 'service', 'technology', 'certificate'],
  },
  katana: {
    reads: 'katana, JSON Lines (-jsonl) or lines of URLs',
    rowFields: {
      ...webPlace,
      ...page,
      method: 'Method of the request, or null.',
      server: 'Server header, or null.',
      redirect: 'Where a redirect points, or null.',
      source: 'The page that led to it, or null.',
      tag: 'Element that led to it, or null.',
      attribute: 'Attribute that led to it, or null.',
      technologies,
      error: 'Why there was no answer, or null; such rows make no records.',
      timestamp: 'When it was seen, or null.',
    },
    ownRecords: true,
    records: ['endpoint', 'domain', 'technology'],
  },
  ffuf: {
    reads: 'ffuf, JSON (-of json, ejson) or JSON Lines (-json)',
    rowFields: {
      ...webPlace,
      ...page,
      redirect: 'Where a redirect points, or null.',
      vhost: 'Host header where it names another host than the URL, or null.',
      words: 'Words of the answer.',
      lines: 'Lines of the answer.',
      keywords: 'Keyword: the word that was put in, as ffuf writes it (base64 in -json and ejson).',
    },
    ownRecords: true,
    records: ['endpoint', 'domain'],
  },
  nuclei: {
    reads: 'nuclei, JSON Lines (-jsonl), a JSON array (-json-export) or its lines',
    rowFields: {
      rule: 'Template, with `:` and the matcher where there is one.',
      template: 'Id of the template.',
      matcher: 'Name of the matcher or extractor, or null.',
      name: 'Title of the finding, or null.',
      severity: 'info, low, medium, high, critical or unknown, or null.',
      type: 'Protocol of the template, or null.',
      ...place,
      url: 'URL of the finding where it is on the web, or null.',
      scheme: 'Scheme of the target, or null.',
      path: 'Path of the URL, or null.',
      target: 'Host, with `:` and the port where it is known.',
      location: 'Where exactly it matched, as nuclei writes it, or null.',
      extracted: 'What extractors took out.',
      matched: 'False for what -matcher-status reports as no match; such rows make no records.',
    },
    ownRecords: true,
    records: ['finding', 'domain', 'address'],
  },
  gowitness: {
    reads: 'gowitness 3, JSON Lines (--write-jsonl)',
    rowFields: {
      ...probed,
      ip: place.ip,
      ...page,
      title: 'Title of the page, or null.',
      server: 'Server header, or null.',
      final_url: 'Where redirects ended, or null.',
      screenshot: 'Name of the picture, or null.',
      technologies,
      error: 'Why nothing answered, or null.',
      input: 'The URL that was asked for.',
      probed_at: 'When it was seen, or null.',
      tls_version: 'Version of TLS that was spoken, or null.',
      subject: 'Common name of the certificate, or null.',
      issuer: 'Common name of its issuer, or null.',
      names: 'Names that the certificate is for.',
    },
    ownRecords: true,
    records: ['endpoint', 'domain', 'address', 'service', 'technology'],
  },
} as const;
