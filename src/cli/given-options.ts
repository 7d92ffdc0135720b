// What a scan is given, as options that several commands share.
import type { Command } from 'commander';
import { gathered } from './word-parsers.ts';

export interface GivenOptions {
  input?: string[];
  allow?: string[];
  deny?: string[];
  scope?: string;
}

export const addGivenOptions = (command: Command): Command =>
  command
    .option('--input <name=value>', 'an input, or name=@file; may be repeated', gathered)
    .option('--allow <target>', 'domain, address or CIDR that may be scanned; may be repeated', gathered)
    .option('--deny <target>', 'what may not, though it lies in --allow; may be repeated', gathered)
    .option('--scope <file>', 'a YAML file with the lists allow: and deny:');
