// The arrows of the house: what each folder may import, and which folder owns which driver. Type imports count
// like any other. test/boundaries holds one file for each kind of forbidden arrow; the check fails unless every
// one of them is reported.

import { Visitor } from '@swc/core/Visitor.js';

// The cruiser walks swc's tree with this visitor, which predates `using` and throws at it.
// oxlint-disable-next-line typescript/no-deprecated, typescript/unbound-method -- the cruiser's own choice; called with `this`
const { visitStatement } = Visitor.prototype;
// oxlint-disable-next-line typescript/no-deprecated
Visitor.prototype.visitStatement = function (statement) {
  if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement);
  return { ...statement, decls: this.visitVariableDeclarators(statement.decls) };
};

/** Folder → the folders it may import besides itself. What is not listed here may not be imported. */
const mayImport = {
  'src/contracts': [],
  'src/domain': ['src/contracts'],
  'src/platform': ['src/contracts', 'src/domain'],
  'src/definition': ['src/contracts', 'src/domain', 'src/platform'],
  'src/readers': ['src/contracts', 'src/domain', 'src/definition', 'src/platform'],
  'src/evaluators': ['src/contracts', 'src/domain', 'src/platform'],
  'src/db': ['src/contracts', 'src/domain', 'src/platform'],
  'src/transport': ['src/contracts', 'src/domain', 'src/platform'],
  'src/stores': ['src/contracts', 'src/domain', 'src/definition', 'src/platform', 'src/db'],
  'src/coordination': [
    'src/contracts',
    'src/domain',
    'src/platform',
    'src/db',
    'src/transport',
    'src/stores',
  ],
  'src/flow': [
    'src/contracts',
    'src/domain',
    'src/definition',
    'src/platform',
    'src/readers',
    'src/evaluators',
    'src/db',
    'src/transport',
    'src/stores',
    'src/coordination',
  ],
  'src/runs': [
    'src/contracts',
    'src/domain',
    'src/definition',
    'src/platform',
    'src/readers',
    'src/evaluators',
    'src/db',
    'src/transport',
    'src/stores',
    'src/coordination',
    'src/flow',
  ],
  'src/api': [
    'src/contracts',
    'src/domain',
    'src/definition',
    'src/platform',
    'src/readers',
    'src/evaluators',
    'src/db',
    'src/transport',
    'src/stores',
    'src/coordination',
    'src/flow',
    'src/runs',
    'src/console',
  ],
  'src/worker': ['src/contracts', 'src/domain', 'src/platform', 'src/transport'],
  'src/trial': ['src/contracts', 'src/domain', 'src/definition', 'src/platform', 'src/readers', 'src/worker'],
  'src/console': ['src/contracts', 'src/domain'],
  'src/cli': ['src/contracts', 'src/domain', 'src/definition', 'src/platform'],
  'src/stack': ['src/contracts', 'src/domain', 'src/platform', 'src/db', 'src/transport'],
  activities: [
    'src/contracts',
    'src/domain',
    'src/definition',
    'src/platform',
    'src/db',
    'src/transport',
    'src/coordination',
    'src/flow',
    'src/runs',
  ],
  workflows: ['src/contracts', 'src/domain'],
};

/** Commands that work on this machine rather than on the API; only these files of the CLI reach past it. */
const localCommands = ['up', 'serve', 'migrate', 'parse', 'definition-try', 'doctor', 'worker'].map(
  (command) => `^src/cli/commands/local-${command}\\.ts$`,
);

/** Package → the folders (or files) of the program that may import it. Tests, the demo and scripts are free. */
const ownDrivers = {
  pg: ['^src/db/'],
  amqplib: ['^src/transport/'],
  '@aws-sdk/[^/]+': ['^src/transport/'],
  '@temporalio/client': ['^src/transport/'],
  '@temporalio/worker': ['^src/roles/'],
  '@temporalio/workflow': ['^workflows/'],
  '@temporalio/activity': ['^activities/'],
  '@temporalio/common': ['^workflows/', '^activities/', '^src/(contracts|transport|roles)/'],
  '@temporalio/testing': [],
  fastify: ['^src/api/'],
  'fastify-type-provider-zod': ['^src/api/'],
  '@fastify/[^/]+': ['^src/api/'],
  commander: ['^src/cli/', '^src/main\\.ts$'],
  pino: ['^src/platform/'],
  'prom-client': ['^src/platform/'],
  standardwebhooks: ['^src/platform/'],
  saxes: ['^src/readers/'],
  yaml: ['^src/(definition|cli|stack)/'],
  protobufjs: [],
};

const program = '^(src|workflows|activities)/';

const layerRules = Object.entries(mayImport).map(([folder, lower]) => ({
  name: `arrows-point-down: ${folder}`,
  comment: `${folder} may import ${lower.length === 0 ? 'nothing of this program' : lower.join(', ')}.`,
  severity: 'error',
  from: { path: `^${folder}/`, ...(folder === 'src/cli' ? { pathNot: localCommands } : {}) },
  to: { path: program, pathNot: [folder, ...lower].map((allowed) => `^${allowed}/`) },
}));

const driverRules = Object.entries(ownDrivers).map(([name, owners]) => ({
  name: `own-driver: ${name}`,
  comment:
    owners.length === 0
      ? `${name} is for tests only.`
      : `${name} is imported from ${owners.join(', ')} only.`,
  severity: 'error',
  from: { path: program, ...(owners.length === 0 ? {} : { pathNot: owners }) },
  to: { path: `(^|/)node_modules/(@types/)?${name}(/|$)` },
}));

export default {
  forbidden: [
    ...layerRules,
    ...driverRules,
    {
      name: 'every-folder-is-listed',
      comment: 'A new folder of src needs its row in `mayImport`; files directly in src are main.ts alone.',
      severity: 'error',
      from: {},
      to: {
        path: '^src/',
        pathNot: ['^src/main\\.ts$', '^src/roles/', ...Object.keys(mayImport).map((folder) => `^${folder}/`)],
      },
    },
    {
      name: 'only-the-entry-imports-roles-and-stack',
      comment:
        'Roles and stack are composition roots: src/main.ts and the local commands of the CLI start them.',
      severity: 'error',
      from: { path: program, pathNot: ['^src/main\\.ts$', '^src/(roles|stack)/', ...localCommands] },
      to: { path: '^src/(roles|stack)/' },
    },
    {
      name: 'roles-and-stack-stay-apart',
      comment: 'The stack starts services as processes; it composes no role, and no role knows the stack.',
      severity: 'error',
      from: { path: '^src/(roles|stack)/' },
      to: { path: '^src/(roles|stack)/', pathNot: '^src/$1/' },
    },
    {
      name: 'nothing-imports-the-entry',
      severity: 'error',
      from: {},
      to: { path: '^src/main\\.ts$' },
    },
    {
      name: 'program-stands-alone',
      comment: 'The program never imports tests, scripts, the demo, benchmarks or the catalog.',
      severity: 'error',
      from: { path: program },
      to: { path: '^(test|scripts|demo|bench|catalog|deploy)/' },
    },
    {
      name: 'pure-folders-touch-no-outside',
      comment:
        'contracts, domain and workflows do no I/O: files, processes, sockets, timers and threads are out.',
      severity: 'error',
      from: { path: '^(src/(contracts|domain)|workflows)/' },
      to: {
        dependencyTypes: ['core'],
        path: '^(node:)?(fs|child_process|http|https|http2|tls|dns|dgram|os|process|timers|worker_threads|cluster)(/|$)',
      },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'every-import-resolves',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'packages-are-declared',
      comment: 'An import of a package that package.json does not list works only by accident.',
      severity: 'error',
      from: { path: program },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['npm'] },
    },
  ],
  options: {
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(\\.sonar|\\.cache|test/boundaries)/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      mainFields: ['main', 'types'],
      extensions: ['.ts', '.mjs', '.js', '.json'],
    },
  },
};
