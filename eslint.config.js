// The import rules of docs/architecture.md: core is pure, stages and what operators do depend on core only, adapters
// implement what these declare, the command line composes. Everything else is what typescript-eslint recommends.
import tseslint from 'typescript-eslint'

const parts = ['adapters', 'cli', 'client', 'collector', 'console', 'forwarder', 'local', 'operators', 'web']

/** Forbids imports of sibling folders under src, by folder name. */
function withoutFolders(names, message) {
  return {
    group: names.flatMap((name) => [`**/${name}/**`, `**/src/${name}/**`]),
    message,
  }
}

const plainKafka = {
  group: ['**/kafka/client.ts'],
  message:
    'Only postrider/kafka runs on kafkajs as it is. Take createKafka of patched-client.ts (docs/kafkajs-patches.md).',
}

const kafkajsInternals =
  'Internals of kafkajs are changed in adapters/kafka/patches/ and used in adapters/kafka/kafkajs-internals.ts only (docs/kafkajs-patches.md).'

/** In a folder of `operators`: what talks to Kafka or keeps a file, and what a terminal shows. */
const kafkaSide = [
  'kafka',
  'store',
  'database',
  'follower',
  'staged-list',
  'message-index',
  'entry-reader',
  'trace-database',
]
const terminalSide = ['command', 'file-command', 'open', 'actor']
const sideFiles = (names) => names.map((name) => `src/operators/*/${name}.ts`)

const stage = (name, ignores = []) => ({
  files: [`src/${name}/**/*.ts`],
  ignores,
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          withoutFolders(
            parts.filter((part) => part !== name),
            'A stage depends on core and on interfaces that it declares itself (docs/architecture.md).',
          ),
          {
            group: ['kafkajs', 'undici', 'avsc', '@kafkajs/*', 'prom-client', 'pino', 'fastify'],
            allowTypeImports: true,
            message: 'Only adapters talk to the outside.',
          },
        ],
      },
    ],
  },
})

export default tseslint.config(
  { ignores: ['dist/**', '.postrider/**', 'node_modules/**'] },
  ...tseslint.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/consistent-type-imports': 'error',
      'no-console': ['error', { allow: ['error'] }],
      eqeqeq: ['error', 'always'],
      'prefer-const': 'error',
    },
  },
  { files: ['scripts/**', 'bench/**'], rules: { 'no-console': 'off' } },
  // A run of the program has streams of its own (src/cli/io.ts).
  { files: ['src/cli/**/*.ts', 'src/operators/**/*.ts'], rules: { 'no-console': 'error' } },
  {
    files: ['src/**/*.ts', 'bench/**/*.ts', 'scripts/**/*.ts'],
    ignores: ['src/adapters/kafka/patches/**', 'src/adapters/kafka/kafkajs-internals.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'Literal[value=/^kafkajs\\u002fsrc\\b/]', message: kafkajsInternals },
        { selector: 'TemplateElement[value.raw=/^kafkajs\\u002f/]', message: kafkajsInternals },
      ],
    },
  },
  {
    files: [
      ...['src/*.ts', 'src/cli/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts', 'scripts/**/*.ts'],
      ...sideFiles(terminalSide),
    ],
    ignores: ['src/kafka-transport.ts'],
    rules: { 'no-restricted-imports': ['error', { patterns: [plainKafka] }] },
  },
  {
    files: ['src/core/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { group: ['node:*'], message: 'core is pure: no node:* in it.' },
            {
              regex: '^\\.\\./\\.\\./',
              message: 'core imports nothing from outside core.',
            },
            {
              regex: '^(?!(@marcbachmann/cel-js|zod)$)[^.]',
              message: 'core imports nothing from outside core.',
            },
          ],
        },
      ],
      'no-restricted-globals': [
        'error',
        ...[
          'setTimeout',
          'setInterval',
          'setImmediate',
          'queueMicrotask',
          'process',
          'performance',
          'fetch',
          'crypto',
        ].map((name) => ({
          name,
          message: 'core has no clock, no randomness and no I/O: take it as an argument.',
        })),
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'core has no clock: take the time as an argument.' },
        { object: 'Math', property: 'random', message: 'core has no randomness: take it as an argument.' },
      ],
      'no-restricted-syntax': [
        'error',
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: 'core has no clock.' },
      ],
    },
  },
  stage('forwarder'),
  stage('collector'),
  stage('client'),
  stage('operators', sideFiles([...kafkaSide, ...terminalSide])),
  {
    files: sideFiles(kafkaSide),
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              ...withoutFolders(
                ['cli', 'console', 'web', 'local'],
                'What talks to Kafka is opened by the command line.',
              ),
              allowTypeImports: true,
            },
            plainKafka,
          ],
        },
      ],
    },
  },
  {
    files: ['src/console/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            withoutFolders(
              ['cli', 'collector', 'forwarder', 'local'],
              'The console serves operations; the command line opens what they work with.',
            ),
          ],
        },
      ],
    },
  },
  {
    files: ['src/web/**/*.{ts,tsx}'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { group: ['node:*', 'zod'], allowTypeImports: true, message: 'The page runs in browsers.' },
          ],
        },
      ],
    },
  },
  {
    files: ['src/adapters/**/*.ts', 'src/local/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            withoutFolders(
              ['cli', 'client', 'console', 'web'],
              'Adapters are composed by the command line, not the other way round.',
            ),
            plainKafka,
          ],
        },
      ],
    },
  },
)
