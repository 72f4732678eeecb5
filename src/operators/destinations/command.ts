// What the commands of destinations have beside their operations, and how they show it to people.
import { Option, type Command } from 'commander'
import { contentOf, repeatable, usageError } from '../../cli/flags.ts'
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import type { CommandSession } from '../../cli/operations/session.ts'
import { printable, table } from '../../cli/terminal.ts'
import { tagOf } from '../schemas.ts'
import { parseJson } from '../../core/json/parse-json.ts'
import { destinationOptions, optionNames, type OptionName } from '../../core/settings/destination-options.ts'
import { expiryOf } from '../../core/settings/certificate-expiry.ts'
import { loginLabels } from '../../core/settings/login.ts'
import type { LoginName } from '../../core/settings/settings.ts'
import { healthSentence, healthText } from '../../core/statistics/health.ts'
import { settingIn } from '../settings/setting-operations.ts'
import type { DestinationCallsView } from './calls.ts'
import { type DestinationView, destinationKind, type sampleView, type ShownRequest } from './destinations.ts'
import type { PreviewView } from './preview.ts'

export const headings = ['ID', 'NAME', 'STATE', 'SOURCES', 'URLS', 'SIGNED']

export function rowOf(view: DestinationView): (string | number)[] {
  const gone = view.urls.filter(({ goneAt }) => goneAt !== null).length
  return [
    view.id,
    view.name,
    view.health ? healthText(view.health) : stateOf(view),
    view.sourceIds.join(', '),
    gone === 0 ? String(view.urls.length) : `${view.urls.length} (${gone} gone)`,
    view.sharedSecret ? 'yes' : 'no',
  ]
}

export function pageOf(view: DestinationView): string {
  const { sharedSecret, earlierSecret } = view
  const lines: Line[] = [
    ['id', view.id],
    ['name', view.name],
    ['state', view.enabled ? 'enabled' : 'disabled'],
    ...healthLines(view),
    ...pauseLines(view),
    ['sources', view.sourceIds.join(', ')],
    [
      'shared secret',
      sharedSecret ? `fingerprint ${sharedSecret.fingerprint}` : 'none: requests are not signed',
    ],
    ...(earlierSecret ? [['', `fingerprint ${earlierSecret.fingerprint}, still active`] as const] : []),
    ...loginLines(view),
    ...view.templateSecrets.map(
      ({ name, fingerprint }) => [`secret.${name}`, `fingerprint ${fingerprint}`] as const,
    ),
    ...optionNames.flatMap((name) => optionLines(name, view[name])),
    ...view.urls.flatMap(({ number, id, url, headers, goneAt }): Line[] => [
      [`URL ${number}`, `${url} (id ${id})`],
      ...headers.map(({ name, fingerprint }) => ['', `${name}: fingerprint ${fingerprint}`] as const),
      ...(goneAt === null
        ? []
        : [
            [
              '',
              `gone since ${goneAt}: it answered 410. Once it is back: postrider destinations enable ${view.id}`,
            ] as const,
          ]),
    ]),
  ]
  const width = Math.max(...lines.map(([label]) => label.length))
  return lines.map(([label, text]) => `${label.padEnd(width)}  ${printable(text)}`).join('\n')
}

type Line = readonly [label: string, text: string]

/** What differs from how most destinations work. */
function optionLines(name: OptionName, value: unknown): Line[] {
  const { fallback, label } = destinationOptions[name]
  if (value === fallback) return []
  const texts = Array.isArray(value) ? (value as string[]) : [value === true ? 'on' : textOf(value)]
  return texts.map((text, index) => [index === 0 ? label.toLowerCase() : '', text])
}

/** Of a map with the key before each. */
const textOf = (value: unknown): string =>
  typeof value === 'object'
    ? Object.entries(value as Record<string, string>)
        .map(([key, text]) => `${key}: ${text.replace(/\s+/g, ' ')}`)
        .join('; ')
    : String(value)

const expiryWords = {
  expired: (at: string) => `EXPIRED ${at}: replace it`,
  soon: (at: string) => `expires ${at}, in less than 14 days: replace it`,
  later: (at: string) => `expires ${at}`,
}

/** A certificate that ends soon, or has ended, is said to. */
function loginLines({ clientCert, ca, oauthClientSecret }: DestinationView): Line[] {
  const now = Date.now()
  const certificates = Object.entries({ clientCert, ca }).flatMap(([name, shown]) =>
    (shown?.certificates ?? []).flatMap(({ subject, issuer, fingerprint, expiresAt }, index): Line[] => {
      const expiry = expiryOf(Date.parse(expiresAt), now)
      return [
        [index === 0 ? loginLabels[name as LoginName] : '', `${subject}, issued by ${issuer}`],
        ['', `fingerprint ${fingerprint}`],
        ['', expiryWords[expiry](expiresAt)],
      ]
    }),
  )
  if (oauthClientSecret === null) return certificates
  return [...certificates, [loginLabels.oauthClientSecret, `fingerprint ${oauthClientSecret.fingerprint}`]]
}

function stateOf({ enabled, pause }: DestinationView): string {
  if (!enabled) return 'disabled'
  if (pause === null) return 'enabled'
  return pause.until === null ? 'paused' : `paused until ${pause.until}`
}

function healthLines({ health, withoutToken }: DestinationView): Line[] {
  if (!health) return []
  const why = healthSentence(health)
  return [
    ['health', why === null ? healthText(health) : `${healthText(health)}: ${why}`],
    ...(withoutToken
      ? [
          [
            '',
            `without a token since ${withoutToken.since}: ${withoutToken.detail ?? 'it is not known why'}`,
          ] as const,
        ]
      : []),
  ]
}

function pauseLines({ id, enabled, pause }: DestinationView): Line[] {
  if (pause === null) return []
  const { since, until, keptUntil } = pause
  const end = until === null ? `until \`postrider destinations resume ${id}\`` : `until ${until}`
  return [
    ['paused', `since ${since}, ${end}`],
    ...(enabled ? [] : [['', 'while it is disabled, its calls are skipped and not held'] as const]),
    ...(keptUntil === null
      ? []
      : [['', `what it holds is kept until ${keptUntil}, and longer the later it came`] as const]),
  ]
}

export interface EndpointFlags {
  header?: string[]
  headerFile?: string[]
  removeHeader?: string[]
  secret?: string
  secretFile?: string
  addSecret?: string
  addSecretFile?: string
  /** True: all of them. */
  removeSecret?: string[] | true
  /** False: none any more. */
  clientCertFile?: string | false
  clientKeyFile?: string
  caFile?: string | false
  oauthClientSecretFile?: string
  templateSecret?: string[]
  removeTemplateSecret?: string[]
}

/** The flags that carry secrets; `create` and `update` have them alike. */
export function addSecretFlags(command: Command): Command {
  return command
    .addOption(
      repeatable(
        '--header <header>',
        'a static header as "URL-number:Name: value", URLs counted from 1; repeatable',
      ),
    )
    .addOption(
      repeatable(
        '--header-file <header>',
        'the same with the value in a file, as "URL-number:Name:file": it shows in no process list or shell history',
      ),
    )
    .addOption(
      new Option('--secret <secret>', 'sign requests with this shared secret, 1-256 bytes').conflicts([
        'secretFile',
        'removeSecret',
        'addSecret',
        'addSecretFile',
      ]),
    )
    .addOption(
      new Option(
        '--secret-file <file>',
        'the same from a file, less the line’s end: it shows in no process list or shell history',
      ).conflicts(['removeSecret', 'addSecret', 'addSecretFile']),
    )
}

/** The flags for what requests identify themselves with, and whom they trust. */
function addLoginFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--client-cert-file <file>',
        'the certificate that its requests identify themselves with over TLS, in PEM form, with those between it and its root',
      ),
    )
    .addOption(
      new Option(
        '--client-key-file <file>',
        'the key of that certificate, in PEM form, without a passphrase',
      ),
    )
    .addOption(
      new Option(
        '--ca-file <file>',
        'certificates of authorities that its requests trust beside all others, in PEM form',
      ),
    )
    .addOption(
      new Option('--oauth-client-secret-file <file>', 'the secret of the OAuth2 client, less the line’s end'),
    )
}

function addNoLoginFlags(command: Command): Command {
  return command
    .addOption(new Option('--no-client-cert-file', 'no client certificate and no key any more'))
    .addOption(new Option('--no-ca-file', 'no authority of its own any more'))
}

/** What the flags say of a login, as a request has it. Throws `usage`. */
function givenLogin(flags: EndpointFlags) {
  const { clientCertFile, clientKeyFile, caFile, oauthClientSecretFile } = flags
  const file = (name: string | false | undefined, flag: string) =>
    typeof name === 'string' ? contentOf(name, flag) : name === false ? null : undefined
  const clientCert = file(clientCertFile, '--client-cert-file')
  const given = {
    clientCert,
    clientKey: clientCert === null ? null : file(clientKeyFile, '--client-key-file'),
    ca: file(caFile, '--ca-file'),
    oauthClientSecret: file(oauthClientSecretFile, '--oauth-client-secret-file'),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

const templateSecretFlag = () =>
  repeatable(
    '--template-secret <secret>',
    'what ${secret.NAME} stands for in its body, headers and URLs, as "NAME=file", less the line’s end; repeatable',
  )

/** Secrets of templates to set and to take away, as a request has them. Throws `usage`, without repeating a flag. */
function givenTemplateSecrets({ templateSecret = [], removeTemplateSecret = [] }: EndpointFlags) {
  const set = templateSecret.map((text, index): [string, string] => {
    const at = text.indexOf('=')
    if (at < 1)
      throw usageError(
        `--template-secret takes "NAME=file", such as "key=key.txt"; the ${ordinal(index + 1)} one is not of that form`,
      )
    return [text.slice(0, at), contentOf(text.slice(at + 1), '--template-secret')]
  })
  const all = [...set, ...removeTemplateSecret.map((name): [string, null] => [name, null])]
  const again = all.find(([name], index) => all.findIndex(([other]) => other === name) < index)
  if (again) throw usageError(`the secret ${JSON.stringify(again[0])} of templates is given twice`)
  return all.length > 0 ? { templateSecrets: Object.fromEntries(all) } : {}
}

/** The flags for changing from one shared secret to another; only `update` has them. */
export function addRotationFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--add-secret <secret>',
        'sign with this shared secret from now on; the one before it stays active beside it',
      ).conflicts('addSecretFile'),
    )
    .addOption(new Option('--add-secret-file <file>', 'the same from a file, less the line’s end'))
    .addOption(
      new Option(
        '--remove-secret [fingerprint]',
        'takes the secret with this fingerprint away, or all: then requests are not signed; repeatable',
      ).argParser((value: string, previous: string[] | true = []) =>
        previous === true ? true : [...previous, value],
      ),
    )
}

/** A header to set at a URL, by its number from 1; null takes it away. */
export interface GivenHeader {
  urlNumber: number
  name: string
  value: string | null
}

/** Throws `usage`; never repeats a flag, for it may hold a secret. */
export function givenHeaders(flags: EndpointFlags): GivenHeader[] {
  const plain = placed('--header', flags.header, '"URL-number:Name: value", such as "1:X-Team: blue"')
  const inFiles = placed(
    '--header-file',
    flags.headerFile,
    '"URL-number:Name:file", such as "1:Authorization:token.txt"',
  )
  const removed = (flags.removeHeader ?? []).map((text) => {
    const match = /^(\d{1,3}):([^:]+)$/.exec(text)
    if (!match) throw usageError('--remove-header takes "URL-number:Name", such as "1:X-Team", and no value')
    return { urlNumber: Number(match[1]), name: match[2]!.trim(), value: null }
  })
  return [
    ...plain.map(({ rest, ...header }) => ({ ...header, value: rest.replace(/^[ \t]+|[ \t]+$/g, '') })),
    ...inFiles.map(({ rest, ...header }) => ({ ...header, value: contentOf(rest, '--header-file') })),
    ...removed,
  ]
}

/** What each flag says: a URL, a header's name, and the rest. */
const placed = (flag: string, texts: readonly string[] = [], form: string) =>
  texts.map((text, index) => {
    const match = /^(\d{1,3}):([^:]*):([^]*)$/.exec(text)
    if (!match) throw usageError(`${flag} takes ${form}; the ${ordinal(index + 1)} one is not of that form`)
    return { urlNumber: Number(match[1]), name: match[2]!.trim(), rest: match[3]! }
  })

/** What the flags ask for in shared secrets, as a request has it. Throws `usage`. */
export function givenSecrets(flags: EndpointFlags): {
  sharedSecret?: string | null
  addSecret?: string
  removeSecrets?: string[]
} {
  const { secret, secretFile, addSecret, addSecretFile, removeSecret } = flags
  const shared = secret ?? (secretFile && contentOf(secretFile, '--secret-file'))
  const added = addSecret ?? (addSecretFile && contentOf(addSecretFile, '--add-secret-file'))
  // All go; one that is added replaces them.
  if (removeSecret === true) return { sharedSecret: added ?? null }
  return {
    ...(shared !== undefined && { sharedSecret: shared }),
    ...(added !== undefined && { addSecret: added }),
    ...(removeSecret && { removeSecrets: removeSecret }),
  }
}

function ordinal(number: number): string {
  return ['first', 'second', 'third', 'fourth', 'fifth'][number - 1] ?? `${number}th`
}

interface UrlFlags extends EndpointFlags {
  url?: string[]
}

const urlFlag = () => repeatable('--url <url>', 'http or https, absolute; repeatable, at most 5')

/** URLs, with the headers that are set at each by its number. */
function urlsOf(urls: readonly string[], headers: readonly GivenHeader[]) {
  const outside = headers.find(({ urlNumber }) => urlNumber < 1 || urlNumber > urls.length)
  if (outside)
    throw usageError(`a header names URL ${outside.urlNumber}; there are ${urls.length}, counted from 1`)
  const places = headers.map(({ urlNumber, name }) => `${urlNumber}:${name.toLowerCase()}`)
  const again = headers.find((_, index) => places.indexOf(places[index]!) < index)
  if (again) throw usageError(`header ${JSON.stringify(again.name)} of URL ${again.urlNumber} is given twice`)
  return urls.map((url, index) => ({
    url,
    headers: Object.fromEntries(
      headers.filter(({ urlNumber }) => urlNumber === index + 1).map(({ name, value }) => [name, value]),
    ),
  }))
}

const names = {
  urls: '--url',
  sharedSecret: '--secret',
  addSecret: '--add-secret',
  removeSecrets: '--remove-secret',
  clientCert: '--client-cert-file',
  clientKey: '--client-key-file',
  ca: '--ca-file',
  oauthClientSecret: '--oauth-client-secret-file',
  templateSecrets: '--template-secret',
}

const page: CommandShape = { text: (view: DestinationView) => pageOf(view) }

const create: CommandShape = {
  ...page,
  names,
  addFlags(command) {
    addLoginFlags(addSecretFlags(command.addOption(urlFlag().makeOptionMandatory())))
    command.addOption(templateSecretFlag())
  },
  read(options) {
    const flags = options as UrlFlags
    const urls = urlsOf(flags.url!, givenHeaders(flags))
    const body = { urls, ...givenSecrets(flags), ...givenLogin(flags), ...givenTemplateSecrets(flags) }
    return () => ({ body })
  },
}

const update: CommandShape = {
  ...page,
  names,
  addFlags(command: Command) {
    const removeHeader = repeatable(
      '--remove-header <header>',
      'takes a header away, as "URL-number:Name"; repeatable',
    )
    addSecretFlags(command.addOption(urlFlag()).addOption(removeHeader))
    addNoLoginFlags(addLoginFlags(addRotationFlags(command)))
    command
      .addOption(templateSecretFlag())
      .addOption(repeatable('--remove-template-secret <name>', 'takes one away; repeatable'))
  },
  read(options, [id]) {
    const flags = options as UrlFlags
    const headers = givenHeaders(flags)
    const secrets = { ...givenSecrets(flags), ...givenLogin(flags), ...givenTemplateSecrets(flags) }
    return ({ settings: { state } }: CommandSession) => {
      if (headers.length === 0 && flags.url === undefined) return { body: secrets }
      // Headers go by the number of their URL: the URLs must be those that they were counted in.
      const found = settingIn(destinationKind, state, id!)
      const urls = urlsOf(flags.url ?? found.urls.map(({ url }) => url), headers)
      return { body: { ...secrets, urls }, ifMatch: tagOf(found) }
    }
  },
}

const preview: CommandShape = {
  ...update,
  text: ({ data, changed }: PreviewView) =>
    data.length === 0
      ? 'it would get none of the newest calls'
      : [
          `${changed} of the newest ${data.length} calls that it would get have other requests.`,
          ...data.map(({ messageId, type, event, isChanged, before, after }) =>
            [
              `── ${[type, event, messageId]
                .filter(Boolean)
                .map((text) => printable(text!))
                .join(' · ')}`,
              ...(isChanged ? ['before:', previewText(before), '', 'after:'] : ['unchanged:']),
              previewText(after),
            ].join('\n'),
          ),
        ].join('\n\n'),
}

const previewText = ({ requests, refusal }: PreviewView['data'][number]['before']): string =>
  refusal === null ? requests.map(requestText).join('\n\n') : `no request: ${printable(refusal)}`

export const destinationShapes: Readonly<Record<string, CommandShape>> = {
  listDestinations: {
    row: { headings, of: rowOf },
    none: 'no destinations; `postrider destinations create --help` shows how to add one',
  },
  showDestination: page,
  enableDestination: page,
  disableDestination: page,
  pauseDestination: page,
  resumeDestination: page,
  createDestination: create,
  updateDestination: update,
  previewDestination: preview,
  listDestinationCalls: {
    text: ({ data, isCut }: DestinationCallsView) =>
      data.length === 0
        ? `none${isCut ? ' among those that were looked at' : ''}`
        : [
            table(
              ['MESSAGE ID', 'TYPE', 'EVENT', 'RECEIVED', 'REASON', 'TIER', 'DUE', 'ATTEMPTS'],
              data.map(({ messageId, type, event, receivedAt, reason, tier, dueAt, attempts }) =>
                [messageId, type, event, receivedAt, reason, tier, dueAt, attempts].map((each) =>
                  printable(String(each ?? '-')),
                ),
              ),
            ),
            ...(isCut ? ['There may be more.'] : []),
          ].join('\n'),
  },
  testDestination: {
    addFlags(command) {
      const call = new Option(
        '--call <file>',
        'a call as SDKs send it, as JSON; without, a track call of ours',
      )
      command.addOption(call.conflicts('messageId'))
    },
    read({ call: file }) {
      if (file === undefined) return () => ({})
      const call = callIn(file as string)
      return () => ({ body: { call } })
    },
    text: ({ data }: { data: ReturnType<typeof sampleView>[] }, { context: { config } }) =>
      data.some(({ outcome }) => outcome === null)
        ? data.map(({ request }) => requestText(request)).join('\n\n')
        : [
            table(
              ['URL', 'OUTCOME', 'STATUS', 'MS', 'ADDRESS', 'DETAIL'],
              data.map(({ number, outcome, status, durationMs, request, detail }) => [
                String(number),
                outcome!,
                String(status ?? '-'),
                durationMs!,
                request.url,
                detail ?? '',
              ]),
            ),
            `Sent from this machine with this command's settings (WEBHOOK_ALLOWED_NETWORKS: ${config.allowedNetworks.join() || 'not set'}, WEBHOOK_PROXY: ${config.wayOut.proxy?.url ?? 'not set'}); forwarders may have others.`,
          ].join('\n'),
    hasFailed: ({ succeeded }: { succeeded: boolean }) => !succeeded,
  },
}

/** Throws `usage`. */
function callIn(file: string): unknown {
  try {
    return parseJson(contentOf(file, '--call'))
  } catch (error) {
    if (error instanceof SyntaxError) throw usageError(`--call ${file} is not JSON: ${error.message}`)
    throw error
  }
}

/** A request as it goes out. */
function requestText({ method, url, headers, body }: ShownRequest): string {
  const lines = headers.map(({ name, value }) => `${name}: ${value}`)
  return [`${method} ${url}`, ...lines, '', body].map(printable).join('\n')
}
