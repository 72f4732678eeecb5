/** The package's; a test holds it to package.json, which a bundled client does not have beside it. */
export const version = '0.2.0-dev'
