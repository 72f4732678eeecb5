// What may import what beyond the layers in eslint.config.js: no circles, not even of types, and the forwarder's
// stages in the order of the path (docs/architecture.md).
const stages = ['consume', 'plan', 'send', 'settle', 'commit']

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'no-circle',
      comment: 'Files that import each other, also by way of others, cannot be read one after another.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    ...stages.slice(1).map((stage, index) => ({
      name: `${stage}-imports-nothing-earlier`,
      comment:
        'A stage takes what the one before it returns, and calls nothing of it. Its types it may know.',
      severity: 'error',
      from: { path: `^src/forwarder/${stage}/` },
      to: {
        path: `^src/forwarder/(${stages.slice(0, index + 1).join('|')})/`,
        dependencyTypesNot: ['type-only'],
      },
    })),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
  },
}
