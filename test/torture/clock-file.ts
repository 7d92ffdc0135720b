// Where a process of Sonar under torture reads how far its clock is off.
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const clockVariable = 'SONAR_TORTURE_CLOCK';

/** Arguments of node that give a process the clock of the file. */
export const clockArguments = ['--import', pathToFileURL(join(import.meta.dirname, 'stepped-date.ts')).href];

/** Whole, or not at all: nobody reads half a number. */
export function setClock(file: string, offsetMs: number): void {
  writeFileSync(`${file}.new`, String(offsetMs));
  renameSync(`${file}.new`, file);
}
