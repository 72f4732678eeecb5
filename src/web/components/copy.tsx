import { requestLine, type Asked } from '../api/request.ts'
import type { Route } from '../api/routes.ts'
import { Icon } from './icon.tsx'
import { say } from './toast.tsx'

async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    say(`Copied ${what}`)
  } catch {
    say(`The browser does not allow copying. ${text}`, 'bad')
  }
}

export function CopyButton({ text, what }: { text: string; what: string }) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() => copy(text, what)}
    >
      <Icon name="copy" />
    </button>
  )
}

/** Copies the request as a command for a shell, in which ADMIN_TOKEN is set. */
export function CopyAsCurl({ route, asked = {} }: { route: Route; asked?: Asked }) {
  return (
    <button
      type="button"
      class="button button-quiet"
      onClick={() => copy(curlOf(route, asked), 'the command')}
    >
      <Icon name="copy" />
      Copy as curl
    </button>
  )
}

function curlOf(route: Route, asked: Asked): string {
  const { method, path } = requestLine(route, asked)
  const parts = ['curl -sS', method === 'GET' ? '' : `-X ${method}`, quoted(location.origin + path)]
  parts.push('-H "Authorization: Bearer $ADMIN_TOKEN"')
  if (asked.body !== undefined)
    parts.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(asked.body))}`)
  return parts.filter(Boolean).join(' ')
}

/** For a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
