// The definition of a shape: its steps, with what every command needs to write itself down.
import { join } from 'node:path';
import { ownName, type Shape } from './shape.ts';

const command = join(import.meta.dirname, '..', 'commands', 'act.sh');

/** Of one run. */
export interface Places {
  /** Every command writes its start and its end into it. */
  ledger: string;
  /** The folder whose files tell commands what to do. */
  marks: string;
  /** Files that are uploaded with definitions, a folder a shape. */
  files: string;
}

/** The whole text; commands find the ledger and the marks of this run by their environment. */
export function definitionOf(shape: Shape, places: Places, name = shape.name): string {
  const environment = `env: {SCAN: "\${inputs.scan}", LEDGER: "${places.ledger}", MARKS: "${places.marks}"}`;
  const inputs = Object.entries({ scan: '{type: text, required: true}', ...shape.inputs })
    .map(([name, declaration]) => `  ${name}: ${declaration}`)
    .join('\n');
  const steps = shape.steps
    .replaceAll('ACT,', `"${command}",`)
    .replaceAll(ownName, name)
    .replaceAll(/^ {4}command: .*$/gm, (line) => `${line}\n    ${environment}`);
  const files = Object.keys(shape.files ?? {}).map((file) => `  ${file}: ./${file}`);
  const head = files.length === 0 ? '' : `files:\n${files.join('\n')}\n`;
  return `sonar: 1\nname: ${name}\n${head}inputs:\n${inputs}\nsteps:${steps}`;
}
