// What may import what beyond the layers in eslint.config.js: no circles of values, and the forwarder's stages in the order
// of the path (docs/architecture.md).
const stages = ['consume', 'plan', 'send', 'settle', 'commit']

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'no-circle',
      comment:
        'Files that call each other, also by way of others, cannot be read one after another. Types may.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
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
    {
      name: 'page-on-the-public-api',
      comment: 'The page uses the public API only: of the rest it knows types, and what is pure.',
      severity: 'error',
      from: { path: '^src/web/' },
      to: {
        path: '^src/',
        pathNot: '^src/(web/|console/page-paths|core/)',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'pages-do-not-know-each-other',
      comment: 'What several pages need lies in components, app or api.',
      severity: 'error',
      from: { path: '^src/web/pages/([^/]+)/' },
      to: { path: '^src/web/pages/[^/]+/', pathNot: '^src/web/pages/$1/' },
    },
    {
      name: 'nothing-needs-the-page',
      comment: 'The console serves the page and knows nothing else of it.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/web/' },
      to: { path: '^src/web/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
  },
}
