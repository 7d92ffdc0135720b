// sonar-probe: the bundled program of the loopback survey. Exit 0 done, 1 failed, 2 wrong arguments.
import { UsageError } from './arguments.mjs';
import { scanPorts } from './ports.mjs';
import { writeReport } from './report.mjs';
import { probeWeb } from './web.mjs';

const usage = `usage:
  sonar-probe ports --ports 80,443,1-1024 --xml FILE [--engine auto|nmap|connect] [--timeout-ms N] [--concurrency N] HOST
  sonar-probe web --url-host HOST --port N --out FILE [--timeout-ms N]
  sonar-probe report DIRECTORY FILE
`;

const commands = { ports: scanPorts, web: probeWeb, report: writeReport };

/** @param {readonly string[]} args */
export async function main([name, ...args]) {
  try {
    if (!Object.hasOwn(commands, name ?? ''))
      throw new UsageError(`unknown command ${JSON.stringify(name ?? '')}`);
    process.exitCode = await commands[name](args);
  } catch (error) {
    const wrongUse = error instanceof UsageError;
    process.stderr.write(`sonar-probe: ${error.message}\n${wrongUse ? usage : ''}`);
    process.exitCode = wrongUse ? 2 : 1;
  }
}
