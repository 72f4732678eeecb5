import { useState } from 'preact/hooks'
import { healthSentence, healthText, type Health, type HealthWord } from '../../core/statistics/health.ts'
import { linkTo } from '../../console/page-paths.ts'
import { away } from '../api/away.ts'
import { requestLine, type Asked } from '../api/request.ts'
import type { Route } from '../api/routes.ts'
import { countText } from './figures.ts'
import { Icon } from './icon.tsx'
import { indented } from './json-text.ts'
import { say } from './notices.tsx'

const shownLength = 4_000

/** Text from outside, JSON on several lines. Of a long one the beginning, until somebody asks for all of it. */
export function LongText({ text, what }: { text: string; what: string }) {
  const [isWhole, setWhole] = useState(false)
  const shown = indented(text) ?? text
  const isCut = !isWhole && shown.length > shownLength
  return (
    <div class="long-text">
      <pre class="foreign" tabIndex={0} role="region" aria-label={what}>
        {isCut ? `${shown.slice(0, shownLength)}…` : shown}
      </pre>
      <div class="long-text-actions">
        {isCut && (
          <button type="button" class="button button-small" onClick={() => setWhole(true)}>
            Show all {countText(shown.length)} characters
          </button>
        )}
        <CopyButton text={text} what={what} />
      </div>
    </div>
  )
}

/** Leads to the life of a call. */
export const MessageLink = ({ messageId, text = messageId }: { messageId: string; text?: string }) => (
  <a class="id cut" href={linkTo('find', { q: messageId })} title={messageId}>
    {text}
  </a>
)

/** A number that leads to the list of what it counts, where there is one. */
export function Figure({
  href,
  what,
  children,
}: {
  href: string | undefined
  what: string
  children: string
}) {
  if (href === undefined) return <>{children}</>
  return (
    <a class="figure" href={href} aria-label={`${what}: ${children}`}>
      {children}
    </a>
  )
}

export type Tone = 'good' | 'warn' | 'bad' | 'plain'

/** A state, by word and colour. What is known from before Kafka or the console went away is not good any more. */
export function Badge({ tone, text, title }: { tone: Tone; text: string; title?: string }) {
  const shown = tone === 'good' && away.value !== null ? 'plain' : tone
  return (
    <span class={`badge badge-${shown}`} title={title}>
      {text}
    </span>
  )
}

const tones: Record<HealthWord, Tone> = {
  delivering: 'good',
  idle: 'plain',
  degraded: 'warn',
  asked_to_wait: 'warn',
  not_known: 'warn',
  held: 'warn',
  failing: 'bad',
  down: 'bad',
  gone: 'bad',
  disabled: 'plain',
}

/** How a destination is, in the one word that all places have for it. */
export function HealthBadge({ health }: { health: Health }) {
  const why = healthSentence(health)
  return <Badge tone={tones[health.word]} text={healthText(health)} {...(why !== null && { title: why })} />
}

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
