import type { SampleAnswer } from '../api/routes.ts'

/** As it went out, without the values of static headers. */
export const requestText = ({
  method,
  url,
  headers,
  body,
}: SampleAnswer['data'][number]['request']): string =>
  [`${method} ${url}`, ...headers.map(({ name, value }) => `${name}: ${value}`), '', body].join('\n')
