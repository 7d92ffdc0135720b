// `sonar definition plan`: the tasks that a scan would make, told to a person or a script.
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { namePattern } from '#sonar/contracts/names.ts';
import type { PlannedStep, PlanPreview, PlanRequest } from '#sonar/contracts/scan-api.ts';
import { isSonarError, SonarError } from '#sonar/platform/errors.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { counted } from './figures.ts';
import type { GivenOptions } from './given-options.ts';
import { itemText } from './item-text.ts';
import { divideInputs, uploadLists } from './large-lists.ts';
import { safeText } from './safe-text.ts';
import { parseInputs, parseScope, readNamedFile } from './scan-inputs.ts';
import { uploadInputs } from './scan-start.ts';
import type { Session } from './session.ts';

export interface PlanOptions extends GivenOptions {
  file?: string[];
  limit: number;
}

/** A definition's name, or a file: what has a dot or a slash in it, or lies here and cannot be a name. */
export async function planDefinition(
  session: Session,
  named: string,
  options: PlanOptions,
): Promise<ExitCode> {
  const { workingDirectory } = session.surroundings;
  const isFile = !namePattern.test(named);
  const scope = parseScope(options, workingDirectory);
  const { small, large } = divideInputs(options.input ?? [], workingDirectory);
  const body: PlanRequest = {
    ...(isFile ? { source: readNamedFile(named, 'definition', workingDirectory) } : { definition: named }),
    inputs: parseInputs(small, workingDirectory),
    ...(scope === undefined ? {} : { scope }),
    limit: options.limit,
  };
  const client = await session.api();
  Object.assign(
    body.inputs ?? {},
    await uploadLists(client, large, workingDirectory),
    await uploadInputs(session, client, options.file ?? []),
  );
  const plan = await client.planDefinition(body).catch((error: unknown) => {
    throw withWayOut(error, named, isFile, workingDirectory);
  });
  session.answer(plan, planLines);
  return exitCodes.ok;
}

function withWayOut(error: unknown, named: string, isFile: boolean, workingDirectory: string): unknown {
  if (!isSonarError(error)) return error;
  if (error.code === 'invalid' && isFile)
    return new SonarError('invalid', `${named}: ${error.message}`, {
      cause: error,
      details: { ...error.details, file: named },
    });
  const path = resolve(workingDirectory, named);
  return error.code === 'not_found' && existsSync(path) && statSync(path).isFile()
    ? new SonarError('not_found', `${error.message}; for the file of that name write ./${named}`, {
        cause: error,
        details: error.details,
      })
    : error;
}

function planLines(plan: PlanPreview): string[] {
  const what = plan.revision === null ? 'as in the file' : `revision ${plan.revision}`;
  const waiting = plan.steps.filter(({ dependsOn }) => dependsOn.length > 0).length;
  return [
    `${safeText(plan.definition)}, ${what}`,
    ...plan.steps.flatMap((step) => ['', ...stepLines(step)]),
    '',
    `${counted(plan.tasks, 'task')} at the start${waiting === 0 ? '' : `; ${counted(waiting, 'step')} by results`}; nothing was made`,
  ];
}

function stepLines(step: PlannedStep): string[] {
  const head = `${step.step} on ${step.tags.join(' or ')}`;
  const notes = step.notes.map((note) => safeText(`  note: ${note}`));
  if (step.dependsOn.length > 0)
    return [safeText(`${head}: depends on results of ${step.dependsOn.join(', ')}`), ...notes];
  const tasks = step.noWork
    ? 'nothing to do'
    : `${step.counted ? '' : 'at least '}${counted(step.tasks, 'task')}`;
  return [
    safeText(`${head}: ${tasks}`),
    ...notes,
    ...step.samples.map(({ item, command, stdin }) =>
      safeText(
        `  ${item === null ? '' : `${itemText(item)}: `}${shown(command)}${stdin === null ? '' : ` < ${JSON.stringify(stdin)}`}`,
      ),
    ),
    ...more(step.samples.length, step.noWork ? 0 : step.tasks - step.failing),
    ...(step.failing === 0 ? [] : [`  ${counted(step.failing, 'item')} that cannot become a command:`]),
    ...step.failures.map(({ item, reason }) => safeText(`    ${itemText(item) ?? ''}: ${reason}`)),
    ...more(step.failures.length, step.failing),
    ...(step.refused === 0 ? [] : [`  ${step.refused} refused:`]),
    ...step.refusals.map((reason) => safeText(`    ${reason}`)),
    ...more(step.refusals.length, step.refused),
  ];
}

/** As an argument list, so that it is plain where one ends: no shell is meant. */
const shown = (command: readonly string[]): string => JSON.stringify(command);

const more = (shownOnes: number, all: number): string[] =>
  all > shownOnes ? [`    … and ${all - shownOnes} more`] : [];
